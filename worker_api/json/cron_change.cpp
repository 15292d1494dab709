// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/cron_change.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "worker_api/json/cron_members.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/unique_key.hpp"

namespace ojs_shm {
namespace {

using json::Kind;
using json::Member;
using json::ObjectWriter;
using Members = std::vector<Member>;

constexpr std::array<std::string_view, 4> kOwn = {"timezone", "overlap_policy", "enabled",
                                                  "description"};
constexpr std::array<std::string_view, 3> kOfJob = {"type", "args", "meta"};

template <std::size_t N>
bool is_in(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

const Member* find(const Members& members, std::string_view name) {
  for (const Member& member : members)
    if (member.name == name && json::kind_of(member.value) != Kind::kNull) return &member;
  return nullptr;
}
const Member* find(Members&&, std::string_view) = delete;  // it would point to what is gone

Members inside(const Members& members, std::string_view name) {
  const Member* member = find(members, name);
  return member != nullptr && json::kind_of(member->value) == Kind::kObject
             ? json::members_of(member->value)
             : Members();
}

/// Whether an option may stand at the top of a cron, where it is not the cron's own.
bool is_option(std::string_view name) {
  return !is_in(json::kCronMembers, name) && !is_in(json::kCronTimes, name) &&
         !is_in(json::kCronManaged, name) && !is_in(kOfJob, name) && name != "options";
}

/// The same time in seconds and in milliseconds; empty: it has one name.
std::string_view other_name(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"timeout", "timeout_ms"}, {"visibility_timeout", "visibility_timeout_ms"}};
  for (const auto& [seconds, milliseconds] : kPairs) {
    if (name == seconds) return milliseconds;
    if (name == milliseconds) return seconds;
  }
  return {};
}

bool is_said(const Members& members, std::string_view name) {
  return find(members, name) != nullptr || find(members, other_name(name)) != nullptr;
}

/// The job as it stands with what is said of it.
void write_job(ObjectWriter& writer, const Members& job, const Members& changes) {
  for (const std::string_view name : kOfJob) {
    const Member* member = find(changes, name);
    if (member == nullptr) member = find(job, name);
    if (member != nullptr) writer.value(name, member->value);
  }
  const Members given = inside(changes, "options");
  ObjectWriter options(writer.open("options"));
  for (const Member& member : inside(job, "options"))
    if (!is_said(given, member.name) && !is_said(changes, member.name))
      options.value(member.name, member.value);
  for (const Member& member : given) options.value(member.name, member.value);
  options.close();
  for (const Member& member : changes)
    if (is_option(member.name)) writer.value(member.name, member.value);
}

}  // namespace

Result<std::unique_ptr<CronText>> parse_cron_changes(const CronInfo& cron, std::string_view changes,
                                                     std::uint64_t now_ms) {
  if (Status checked = json::check(changes); !checked) return checked.error();
  changes = json::trim(changes);
  if (json::kind_of(changes) != Kind::kObject)
    return Error{Code::kInvalid, "a cron must be a JSON object"}.about("cron");
  const std::string printed = print_cron(cron);
  const Members now = json::members_of(printed), given = json::members_of(changes);

  std::string merged;
  ObjectWriter writer(merged);
  writer.text("name", cron.name);
  bool has_expression = false;
  for (const std::string_view name : json::kCronTimes)
    if (const Member* member = find(given, name)) {
      writer.value(name, member->value);
      has_expression = true;
    }
  if (!has_expression) writer.text("expression", cron.expression);
  for (const std::string_view name : kOwn) {
    const Member* member = find(given, name);
    if (member == nullptr) member = find(now, name);
    if (member != nullptr) writer.value(name, member->value);
  }
  if (const Member* job = find(given, "job_template")) {
    writer.value("job_template", job->value);
    for (const Member& member : given)  // a strict segment refuses them
      if (is_option(member.name)) writer.value(member.name, member.value);
  } else {
    ObjectWriter job_template(writer.open("job_template"));
    write_job(job_template, inside(now, "job_template"), given);
    job_template.close();
  }
  writer.close();
  auto text = parse_cron(merged, now_ms);
  // A key that counted among the jobs of its tenant still does after a change by another caller.
  if (text && (*text)->job.unique && !(*text)->job.tenant.empty() && !says_its_key(cron.job)) {
    auto unique = unique_in_tenant((*text)->spec.job);
    if (!unique) return unique.error();
    (*text)->job.unique = std::move(*unique);
  }
  return text;
}

}  // namespace ojs_shm
