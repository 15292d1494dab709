// SPDX-License-Identifier: Apache-2.0
// Which workers may take jobs, and when: the lines of an export about pools of workers and limits.
#include <algorithm>
#include <string>

#include "worker_api/json/envelope_export.hpp"
#include "worker_api/json/envelope_fields.hpp"
#include "worker_api/json/export_line.hpp"
#include "worker_api/json/time_text.hpp"
#include "worker_api/roles/limit_rule.hpp"
#include "worker_api/roles/worker_pools.hpp"

namespace ojs_shm {
namespace {

using json::Complaint;
using json::Member;
using json::ObjectWriter;

/// Calls `take` with each member, until it complains; whether it did not.
template <class Take>
bool each_member(std::string_view what, std::string_view object, Complaint& complaint, Take take) {
  if (json::kind_of(object) != json::Kind::kObject) {
    complaint.wrong_kind(what, "an object", object);
    return false;
  }
  for (const Member& member : json::members_of(object)) {
    if (!take(member) && !complaint.raised())
      complaint.about(member.name, "is not a member of " + std::string(what));
    if (complaint.raised()) return false;
  }
  return true;
}

}  // namespace

std::string print_export(const ExportedPool& pool) {
  return internal::export_line("pool", [&](ObjectWriter& writer) {
    writer.text("name", pool.name);
    writer.value("settings", print_pool_settings(pool.settings));
  });
}

std::string print_export(const ExportedCron& cron) { return "{\"cron\":" + cron.text + "}"; }

std::string print_export(const ExportedLimit& limit) {
  return internal::export_line("limit", [&](ObjectWriter& writer) {
    writer.text("key", limit.key);
    if (limit.by_operator) writer.boolean("override", true);
    if (limit.expires_at_ms != 0) writer.text("expires_at", print_timestamp(limit.expires_at_ms));
    writer.value("settings", print_limit_settings(limit.limit));
  });
}

Result<ExportLine> read_exported_pool(std::string_view object) {
  ExportedPool pool;
  Complaint complaint;
  bool has_settings = false;
  const bool read = each_member("pool", object, complaint, [&](const Member& member) {
    if (member.name == "name") {
      pool.name = json::text(member.name, member.value, complaint).value_or("");
    } else if (member.name == "settings") {
      auto settings = parse_pool_settings(member.value);
      has_settings = settings.ok();
      if (settings)
        pool.settings = std::move(settings).value();
      else
        complaint.about(member.name, "is wrong: " + settings.error().message);
    } else {
      return false;
    }
    return true;
  });
  if (read && !has_settings) complaint.about("settings", "are missing");
  if (complaint.raised()) return complaint.error();
  return ExportLine(std::move(pool));
}

Result<ExportLine> read_exported_limit(std::string_view object) {
  ExportedLimit limit;
  Complaint complaint;
  each_member("limit", object, complaint, [&](const Member& member) {
    if (member.name == "key") {
      limit.key = json::text(member.name, member.value, complaint).value_or("");
    } else if (member.name == "override") {
      limit.by_operator = json::boolean(member.name, member.value, complaint).value_or(false);
    } else if (member.name == "expires_at") {
      const ParsedMs parsed = parse_timestamp(json::string_of(member.value).value_or(""));
      if (!parsed) complaint.about(member.name, text_of(parsed.fault));
      limit.expires_at_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(parsed.ms, 1));
    } else if (member.name == "settings") {
      const auto read = parse_limit(member.value, true);
      if (read)
        limit.limit = read.value().limit;
      else
        complaint.about(member.name, "is wrong: " + read.error().message);
    } else {
      return false;
    }
    return true;
  });
  if (complaint.raised()) return complaint.error();
  return ExportLine(std::move(limit));
}

}  // namespace ojs_shm
