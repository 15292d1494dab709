// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/quantity.hpp"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "tools/shell/refusal.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::shell {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKiB = 1024.0, kMiB = kKiB * kKiB, kGiB = kMiB * kKiB;
constexpr Unit kByteUnits[] = {{"", 1},       {"B", 1},     {"K", kKiB},  {"KB", kKiB},
                               {"KiB", kKiB}, {"M", kMiB},  {"MB", kMiB}, {"MiB", kMiB},
                               {"G", kGiB},   {"GB", kGiB}, {"GiB", kGiB}};

/// A number that is not negative and a unit behind it.
std::optional<std::uint64_t> parse_with_unit(std::string_view text) {
  double number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || !(number >= 0)) return std::nullopt;
  std::string_view name(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (name.starts_with(' ')) name.remove_prefix(1);
  for (const Unit& unit : kByteUnits) {
    if (unit.name != name) continue;
    const double value = std::round(number * unit.factor);
    if (value > 9e18) return std::nullopt;
    return static_cast<std::uint64_t>(value);
  }
  return std::nullopt;
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  if (const auto value = parse_with_unit(text)) return *value;
  return invalid(fmt::format(
      "\"{}\" is not a size; write bytes, or a number with K, M or G, such as 64M", text));
}

Result<std::uint64_t> parse_duration_ms(std::string_view text) {
  const bool bare =
      !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
  const ParsedMs parsed = parse_duration(bare ? std::string(text) + "s" : std::string(text));
  if (parsed) return static_cast<std::uint64_t>(parsed.ms);
  return invalid(
      fmt::format("\"{}\" is not a duration: it {}; for example 500ms, 30s, 5m, 1h or PT30S", text,
                  text_of(parsed.fault)));
}

std::chrono::milliseconds wait_of(std::string_view text) {
  const std::uint64_t ms = must(parse_duration_ms(text));
  return internal::within_reach(std::chrono::milliseconds(static_cast<std::int64_t>(ms)));
}

Result<std::uint64_t> parse_time_ms(std::string_view text) {
  const ParsedMs at = parse_timestamp(text);
  if (at && at.ms > 0) return static_cast<std::uint64_t>(at.ms);
  const auto from_now = parse_duration_ms(text.starts_with('+') ? text.substr(1) : text);
  if (from_now) return unix_now_ms() + from_now.value();
  return invalid(
      fmt::format("\"{}\" is not a time: it {}; for example 2026-03-01T12:00:00Z, or a duration "
                  "from now such as 30s",
                  text, text_of(at.fault)));
}

std::uint64_t unix_now_ms() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(
      duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count());
}

Result<std::uint32_t> parse_mode(std::string_view text) {
  std::uint32_t mode = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (problem == std::errc{} && rest == text.data() + text.size() && mode <= 0777) return mode;
  return invalid(
      fmt::format("\"{}\" is not a mode; write octal permission bits, such as 0660", text));
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kNames.size()) {
    value /= 1024.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kNames[unit]);
}

}  // namespace ojs_shm::shell
