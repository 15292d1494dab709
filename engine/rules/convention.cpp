// SPDX-License-Identifier: Apache-2.0
#include "engine/rules/convention.hpp"

#include <algorithm>
#include <array>

namespace ojs_shm::engine {
namespace {

constexpr NamedPriority kOjsNames[] = {
    {"critical", 0}, {"high", 1}, {"normal", 2}, {"low", 3}, {"bulk", 4}};
constexpr NamedPriority kOjsCoreNames[] = {{"high", 10}, {"normal", 0}, {"low", -10}};
constexpr NamedPriority kQoNames[] = {{"critical", 255}, {"urgent", 200}, {"high", 175},
                                      {"normal", 128},   {"low", 50},     {"background", 10},
                                      {"bulk", 0}};

struct Scale {
  ConventionInfo info;
  bool lower_first;
  std::span<const NamedPriority> names;
};

// Indexed by Convention.
constexpr std::array<Scale, 3> kScales = {{
    {{"ojs", 0, 255, 2, false}, true, kOjsNames},
    {{"ojs-core", -100, 100, 0, false}, false, kOjsCoreNames},
    {{"qo", 0, 255, 128, true}, false, kQoNames},
}};

constexpr bool each_scale_fits_a_rank() {
  return std::ranges::all_of(
      kScales, [](const Scale& scale) { return scale.info.max - scale.info.min <= 255; });
}
static_assert(each_scale_fits_a_rank(),
              "a rank is one byte, so a convention has at most 256 priorities");

const Scale& scale_of(Convention convention) noexcept {
  return kScales[static_cast<std::size_t>(convention)];
}

}  // namespace

std::optional<Convention> convention_by_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kScales.size(); ++i) {
    if (kScales[i].info.name == name) return static_cast<Convention>(i);
  }
  return std::nullopt;
}

std::optional<Convention> convention_of_byte(std::uint8_t byte) noexcept {
  if (byte >= kScales.size()) return std::nullopt;
  return static_cast<Convention>(byte);
}

const ConventionInfo& info(Convention convention) noexcept { return scale_of(convention).info; }

std::optional<std::uint8_t> rank_of(Convention convention, std::int64_t priority) noexcept {
  const Scale& scale = scale_of(convention);
  if (priority < scale.info.min || priority > scale.info.max) return std::nullopt;
  return static_cast<std::uint8_t>(extended_rank(convention, priority));
}

Ranks::Ranks(Convention convention) noexcept
    : best_(static_cast<std::uint64_t>(extended_priority(convention, 0))),
      last_(static_cast<std::uint64_t>(info(convention).max - info(convention).min)),
      lower_first_(lower_first(convention)) {}

int priority_of(Convention convention, std::uint8_t rank) noexcept {
  const Scale& scale = scale_of(convention);
  const int known = std::min<int>(rank, scale.info.max - scale.info.min);
  return static_cast<int>(extended_priority(convention, known));
}

std::int64_t extended_rank(Convention convention, std::int64_t priority) noexcept {
  const Scale& scale = scale_of(convention);
  return scale.lower_first ? priority - scale.info.min : scale.info.max - priority;
}

std::int64_t extended_priority(Convention convention, std::int64_t rank) noexcept {
  const Scale& scale = scale_of(convention);
  return scale.lower_first ? scale.info.min + rank : scale.info.max - rank;
}

bool lower_first(Convention convention) noexcept { return scale_of(convention).lower_first; }

std::optional<int> priority_by_name(Convention convention, std::string_view name) noexcept {
  for (const NamedPriority& named : scale_of(convention).names) {
    if (named.name == name) return named.priority;
  }
  return std::nullopt;
}

std::span<const NamedPriority> priority_names(Convention convention) noexcept {
  return scale_of(convention).names;
}

}  // namespace ojs_shm::engine
