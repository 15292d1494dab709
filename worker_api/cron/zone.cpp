// SPDX-License-Identifier: Apache-2.0
#include "worker_api/cron/zone.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>

#include <date/tz.h>
#include <spdlog/fmt/fmt.h>

namespace ojs_shm {
namespace {

// In the database for the sake of old files, yet not names of places: what they stand for differs
// between countries, or is an offset that knows no summer time.
constexpr std::string_view kRefused[] = {
    "EST",     "MST",     "HST",   "CET",   "EET",  "MET",       "WET",        "EST5EDT", "CST6CDT",
    "MST7MDT", "PST8PDT", "GMT+0", "GMT-0", "GMT0", "localtime", "posixrules", "Factory"};

Error refuse(std::string_view name, std::string_view why) {
  return Error{Code::kInvalid, fmt::format("timezone \"{}\" {}", name.substr(0, 60), why)}.about(
      "timezone");
}

const date::time_zone& zone_in(const void* zone) noexcept {
  return *static_cast<const date::time_zone*>(zone);
}

}  // namespace

Result<Zone> Zone::find(std::string_view name) {
  Zone found;
  if (name.empty() || name == "UTC" || name == "Etc/UTC") return found;
  if (std::find(std::begin(kRefused), std::end(kRefused), name) != std::end(kRefused) ||
      name.starts_with("posix/") || name.starts_with("right/"))
    return refuse(name, "is not the name of a place; write one such as \"America/New_York\"");
  try {
    date::get_tzdb();
  } catch (const std::exception&) {
    return refuse(name, "cannot be looked up: this machine has no zones; install tzdata");
  }
  try {
    found.zone_ = date::locate_zone(std::string(name));
    found.wall_at(0);  // reads its file
  } catch (const std::exception&) {
    return refuse(name, "is not in the IANA database; write \"UTC\" or such as \"Europe/Berlin\"");
  }
  return found;
}

std::int64_t Zone::wall_at(std::int64_t time) const {
  if (zone_ == nullptr) return time;
  const date::sys_seconds at{std::chrono::seconds{time}};
  return time + zone_in(zone_).get_info(at).offset.count();
}

std::optional<std::int64_t> Zone::first_time_of(std::int64_t wall) const {
  if (zone_ == nullptr) return wall;
  const date::local_info info =
      zone_in(zone_).get_info(date::local_seconds{std::chrono::seconds{wall}});
  if (info.result == date::local_info::nonexistent) return std::nullopt;
  return wall - info.first.offset.count();
}

}  // namespace ojs_shm
