// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ojs_shm::engine {

/// What a priority number means in a segment. Chosen when the segment is made, kept in its header,
/// never mixed. Everything beyond this file knows only the rank, in which 0 is fetched first.
enum class Convention : std::uint8_t {
  kOjs = 0,      ///< OJS Job Priority: lower first
  kOjsCore = 1,  ///< OJS Core: higher first, around 0
  kQo = 2,       ///< qo task priorities: higher first
};

struct ConventionInfo {
  std::string_view name;
  int min, max;
  int default_priority;
  bool immutable;  ///< a job keeps the priority it was enqueued with
};

/// A word people may use in place of a number. Clients and the command line know these words; the
/// wire carries numbers.
struct NamedPriority {
  std::string_view name;
  int priority;
};

/// "ojs", "ojs-core" or "qo".
std::optional<Convention> convention_by_name(std::string_view name) noexcept;

/// The byte of a segment header, which any process may have written.
std::optional<Convention> convention_of_byte(std::uint8_t byte) noexcept;

const ConventionInfo& info(Convention convention) noexcept;

/// The internal order: a lower rank is fetched first. Nothing when the convention does not allow
/// the priority.
std::optional<std::uint8_t> rank_of(Convention convention, std::int64_t priority) noexcept;
/// The same of one convention, at hand: a difference and a comparison.
class Ranks {
 public:
  explicit Ranks(Convention convention) noexcept;
  std::optional<std::uint8_t> of(std::int64_t priority) const noexcept {
    const auto above = static_cast<std::uint64_t>(priority) - best_;
    const std::uint64_t rank = lower_first_ ? above : 0 - above;
    if (rank > last_) return std::nullopt;
    return static_cast<std::uint8_t>(rank);
  }

 private:
  std::uint64_t best_, last_;  ///< the priority of rank 0; the last rank
  bool lower_first_;
};

/// The way back. A rank that no priority has (a damaged byte) reads as the last one.
int priority_of(Convention convention, std::uint8_t rank) noexcept;

/// The same scale, going on beyond both ends: what ageing may reach.
std::int64_t extended_rank(Convention convention, std::int64_t priority) noexcept;
std::int64_t extended_priority(Convention convention, std::int64_t rank) noexcept;
bool lower_first(Convention convention) noexcept;

std::optional<int> priority_by_name(Convention convention, std::string_view name) noexcept;

/// Most urgent first.
std::span<const NamedPriority> priority_names(Convention convention) noexcept;

}  // namespace ojs_shm::engine
