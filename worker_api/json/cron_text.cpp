// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/cron_text.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "worker_api/json/cron_members.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm {
namespace {

using json::Kind;
using json::Member;
using json::ObjectWriter;

// What print_job() says of a job that is none, beside what makes it.
constexpr std::array<std::string_view, 8> kOfOneJob = {"specversion", "id",           "state",
                                                       "attempt",     "max_attempts", "created_at",
                                                       "enqueued_at", "cron_name"};

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Error invalid(std::string_view member, std::string message) {
  return Error{Code::kInvalid, std::move(message)}.about(std::string(member));
}

class CronReader {
 public:
  explicit CronReader(CronText& text) : text_(text) {}

  std::optional<Error> read(std::string_view object, std::uint64_t now_ms) {
    const Member* inside = nullptr;
    const std::vector<Member> members = json::members_of(object);
    std::string beside;
    ObjectWriter writer(beside);
    bool any_beside = false;
    for (const Member& member : members) {
      if (json::kind_of(member.value) == Kind::kNull || among(json::kCronManaged, member.name))
        continue;
      if (member.name == "job_template") {
        inside = &member;
      } else if (!read_own(member)) {
        writer.value(member.name, member.value);
        any_beside = true;
      }
      if (fault_) return fault_;
    }
    writer.close();
    if (inside == nullptr) return read_job(beside, "", now_ms);
    if (json::kind_of(inside->value) != Kind::kObject)
      return invalid("job_template", "job_template must be an object");
    // A client that has both spellings from a reply means what stands inside.
    if (any_beside)
      for (const Member& member : json::members_of(beside))
        if (!among(kBoth, member.name)) text_.unknown.push_back(member.name);
    return read_job(inside->value, "job_template.", now_ms);
  }

 private:
  static constexpr std::array<std::string_view, 5> kBoth = {"type", "args", "meta", "options",
                                                            "queue"};

  void read_text(const Member& member, std::string& into) {
    auto found = json::string_of(member.value);
    if (!found)
      fault_ = invalid(member.name, member.name + " must be a text");
    else if (!into.empty() && into != *found)
      fault_ = invalid(member.name, member.name + " stands there twice, with different values");
    else
      into = std::move(*found);
  }

  /// Whether the member is the cron's and not its job's.
  bool read_own(const Member& member) {
    CronSpec& spec = text_.spec;
    if (member.name == "name") {
      read_text(member, text_.name);
    } else if (among(json::kCronTimes, member.name)) {
      read_text(member, text_.expression);
    } else if (member.name == "timezone") {
      read_text(member, text_.timezone);
      if (!fault_ && text_.timezone.empty())
        fault_ = invalid("timezone", "timezone must be a name such as Europe/Berlin, or left out");
    } else if (member.name == "description") {
      read_text(member, text_.description);
    } else if (member.name == "enabled") {
      const auto enabled = json::bool_of(member.value);
      if (!enabled) fault_ = invalid("enabled", "enabled must be true or false");
      spec.enabled = enabled.value_or(true);
    } else if (member.name == "overlap_policy") {
      const auto overlap = cron_overlap_by_name(json::string_of(member.value).value_or(""));
      if (!overlap)
        fault_ = invalid("overlap_policy",
                         "overlap_policy must be skip, enqueue, allow or cancel_previous");
      spec.overlap = overlap.value_or(CronOverlap::kSkip);
    } else {
      return false;
    }
    return true;
  }

  std::optional<Error> read_job(std::string_view object, const std::string& place,
                                std::uint64_t now_ms) {
    std::string whole(json::trim(object));
    const std::vector<Member> members = json::members_of(whole);
    if (std::ranges::find(members, "args", &Member::name) == members.end()) {
      whole.pop_back();
      whole += members.empty() ? R"("args":[]})" : R"(,"args":[]})";
    }
    auto read = parse_envelope(whole, now_ms);
    if (!read) {
      Error error = read.error();
      error.subject = place + error.subject;
      return error;
    }
    if (!read->vast_priority.empty() || !read->priority_name.empty())
      return invalid(place + "priority", "priority is out of range");
    if (read->wants_workflow)
      return invalid(place + "workflow", "a cron enqueues a job, not a workflow");
    text_.job = std::move(*read);
    text_.spec.job = text_.job.spec();
    // How long each job lives.
    if (const std::uint64_t at = text_.job.expires_at_ms; at != 0)
      text_.spec.job.expires_at_ms = at > now_ms ? at - now_ms : 1;
    text_.unknown.insert(text_.unknown.end(), text_.job.unknown.begin(), text_.job.unknown.end());
    return std::nullopt;
  }

  CronText& text_;
  std::optional<Error> fault_;
};

void write_time(ObjectWriter& writer, std::string_view name, std::uint64_t unix_ms) {
  if (unix_ms == 0)
    writer.value(name, "null");
  else
    writer.text(name, print_timestamp(unix_ms));
}

/// Type, args and meta, and everything else as options.
void write_job(ObjectWriter& writer, const std::vector<Member>& members) {
  for (const std::string_view name : {"type", "args", "meta"})
    for (const Member& member : members)
      if (member.name == name) writer.value(name, member.value);
  ObjectWriter options(writer.open("options"));
  for (const Member& member : members)
    if (!among(kOfOneJob, member.name) && member.name != "type" && member.name != "args" &&
        member.name != "meta")
      options.value(member.name, member.value);
  options.close();
}

}  // namespace

Result<std::unique_ptr<CronText>> parse_cron(std::string_view json, std::uint64_t now_ms,
                                             std::string_view name) {
  if (Status status = json::check(json); !status) return status.error();
  if (json::kind_of(json) != Kind::kObject) return invalid("cron", "a cron must be a JSON object");
  auto text = std::make_unique<CronText>();
  text->name = name;
  if (auto fault = CronReader(*text).read(json, now_ms)) return std::move(*fault);
  CronSpec& spec = text->spec;
  spec.name = text->name;
  spec.expression = text->expression;
  if (!text->timezone.empty()) spec.timezone = text->timezone;
  spec.description = text->description;
  return text;
}

std::string print_cron(const CronInfo& cron) {
  JobInfo job = cron.job;
  const std::uint64_t lifetime = std::exchange(job.expires_at_ms, 0);
  std::string printed = print_job(job);
  std::vector<Member> members = json::members_of(printed);
  const std::string lives = "\"+" + print_duration(lifetime) + "\"";
  if (lifetime != 0 && std::ranges::find(members, "expires_at", &Member::name) == members.end())
    members.push_back({"expires_at", lives});
  std::string out;
  ObjectWriter writer(out);
  writer.text("name", cron.name);
  writer.text("cron", cron.expression);
  writer.text("expression", cron.expression);
  writer.text("schedule", cron.expression);
  writer.text("timezone", cron.timezone);
  writer.text("overlap_policy", cron_overlap_name(cron.overlap));
  writer.boolean("enabled", cron.enabled);
  writer.text("status", cron.enabled ? "active" : "paused");
  if (!cron.description.empty()) writer.text("description", cron.description);
  write_job(writer, members);
  ObjectWriter inside(writer.open("job_template"));
  write_job(inside, members);
  inside.close();
  write_time(writer, "created_at", cron.created_at_ms);
  write_time(writer, "next_run_at", cron.next_run_at_ms);
  write_time(writer, "last_run_at", cron.last_run_at_ms);
  writer.number("run_count", static_cast<std::int64_t>(cron.run_count));
  writer.number("skipped_count", static_cast<std::int64_t>(cron.skipped_count));
  if (!cron.last_job.empty()) writer.text("last_job_id", cron.last_job);
  writer.close();
  return out;
}

}  // namespace ojs_shm
