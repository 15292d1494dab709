// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "engine/rules/uuid.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/json/id_text.hpp"
#include "worker_api/json/workflow_text.hpp"

namespace ojs_shm {
namespace {

using json::Kind;
using json::Member;
using Members = std::vector<Member>;

const Member* find(const Members& members, std::string_view name) {
  for (const Member& member : members)
    if (member.name == name && json::kind_of(member.value) != Kind::kNull) return &member;
  return nullptr;
}
const Member* find(Members&&, std::string_view) = delete;  // it would point to what is gone

/// First those of a whole or a part, then those of a step beside its job's.
constexpr std::string_view kMembers[] = {
    "type",     "id",    "name",  "steps",      "jobs",          "callbacks",
    "priority", "queue", "meta",  "metadata",   "options",       "specversion",
    "chain",    "group", "batch", "depends_on", "callback_type", "workflow"};
constexpr std::size_t kOfSteps = 3;

/// What of a whole's `options` is not a default of its jobs by itself.
constexpr std::string_view kNoDefaults[] = {"type",     "id",      "args",        "queue",
                                            "priority", "options", "specversion", "workflow",
                                            "unique",   "pending", "traceparent"};
/// Names of one thing: a job that says it by any of them has said it.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"retry_policy", "retry"}, {"max_attempts", "retry"},
    {"timeout_ms", "timeout"}, {"visibility_timeout_ms", "visibility_timeout"},
    {"metadata", "meta"},      {"delay_until", "scheduled_at"}};

std::string_view subject_of(std::string_view name) {
  for (const auto& [other, subject] : kOtherNames)
    if (name == other) return subject;
  return name;
}

bool says(const Members& members, std::string_view subject) {
  return std::ranges::any_of(members, [subject](const Member& member) {
    return subject_of(member.name) == subject && json::kind_of(member.value) != Kind::kNull;
  });
}

bool is_of_parts(std::string_view name) {
  const auto parts = std::span(kMembers).first(std::size(kMembers) - kOfSteps);
  return std::ranges::find(parts, name) != parts.end();
}

std::optional<WorkflowKind> kind_by_name(std::string_view name) {
  if (name == "chain") return WorkflowKind::kChain;
  if (name == "group") return WorkflowKind::kGroup;
  if (name == "batch") return WorkflowKind::kBatch;
  return std::nullopt;
}

std::optional<StepCondition> condition_by_name(std::string_view name) {
  if (name.starts_with("on_")) name.remove_prefix(3);
  if (name == "success") return StepCondition::kCallback;
  if (name == "failure") return StepCondition::kFailure;
  if (name == "complete") return StepCondition::kComplete;
  return std::nullopt;
}

class WorkflowReader {
 public:
  explicit WorkflowReader(std::uint64_t now_ms) : now_ms_(now_ms) {}

  void read_root(std::string_view object) {
    const Members members = json::members_of(object);
    WorkflowSpec& root = text.spec;
    if (const Member* id = find(members, "id")) read_id(id->value, root);
    const Member* type = find(members, "type");
    if (type == nullptr)
      if (const Member* inside = the_kind(members, "$"); inside != nullptr)
        return read_short(inside->name, inside->value, members, "$", root);
    if (complaint) return;
    if (type == nullptr) {
      root.kind = WorkflowKind::kGraph;
    } else {
      const auto kind = kind_by_name(json::string_of(type->value).value_or(""));
      if (!kind)
        return complain("$.type",
                        "type must be chain, group or batch; leave it out for steps with "
                        "depends_on");
      root.kind = *kind;
    }
    read_parts(members, "$", root);
  }

  /// The job, and what its member `workflow` says comes after it.
  void read_job_and_rest(std::string_view object) {
    Members members = json::members_of(object);
    const Member* rest = find(members, "workflow");
    WorkflowSpec& root = text.spec;
    root.kind = WorkflowKind::kChain;
    if (rest == nullptr || json::kind_of(rest->value) != Kind::kObject)
      return complain("$.workflow", "workflow must be an object");
    root.steps.resize(2);
    const Members inside = json::members_of(rest->value);
    const Member* part = the_kind(inside, "$.workflow");
    if (part == nullptr)
      return complain("$.workflow", "workflow must have a chain, a group or a batch");
    read_short(part->name, part->value, {}, "$.workflow", root.steps[1]);
    if (find(members, "id") != nullptr)
      complain("$.id", "a job with a workflow gets its id here; leave id out");
    if (complaint) return;
    read_job(members, "$", root.steps[0]);
    // the rest inherits the job's priority, as from the first step of any chain
    const JobSpec& job = root.steps[0].job;
    root.queue = job.queue.empty() ? std::string_view("default") : job.queue;
    root.tenant = job.tenant;
  }

  WorkflowText text;
  std::optional<Error> complaint;

 private:
  void complain(std::string_view path, std::string_view what) {
    if (complaint) return;
    complaint = Error{Code::kInvalid, std::string(path) + ": " + std::string(what)}.about(
        std::string(path));
  }
  std::string_view keep(std::string kept) { return text.texts.emplace_back(std::move(kept)); }

  /// The member that names a kind, of which there may be one.
  const Member* the_kind(const Members& members, std::string_view path) {
    const Member* found = nullptr;
    for (const std::string_view name : {"chain", "group", "batch"}) {
      const Member* member = find(members, name);
      if (member != nullptr && found != nullptr)
        complain(path, "there may be one of chain, group and batch");
      if (member != nullptr) found = member;
    }
    return found;
  }

  void read_id(std::string_view value, WorkflowSpec& spec) {
    const auto id = json::string_of(value);
    if (!id) return complain("$.id", "id must be a text");
    if (!engine::parse_id(*id)) return complain("$.id", internal::not_an_id_text(*id, "workflow"));
    spec.id = keep(*id);
  }

  /// What a whole says for its jobs ends with it.
  struct DefaultsEnd {
    Members& defaults;
    Members outer = defaults;
    ~DefaultsEnd() { defaults = std::move(outer); }
  };

  /// {"chain": [...]} and its like.
  void read_short(std::string_view name, std::string_view value, const Members& around,
                  const std::string& path, WorkflowSpec& spec) {
    spec.kind = *kind_by_name(name);
    const std::string place = path + "." + std::string(name);
    if (json::kind_of(value) == Kind::kArray) {
      const DefaultsEnd end{defaults_};
      note_unknown(around, path);
      read_common(around, path, spec);
      return read_steps(value, place, spec);
    }
    if (json::kind_of(value) != Kind::kObject)
      return complain(place, std::string(name) + " must be an array of jobs");
    read_parts(json::members_of(value), place, spec);
  }

  /// Of a whole or a part: what means nothing in it.
  void note_unknown(const Members& members, const std::string& path) {
    for (const Member& member : members) {
      if (!is_of_parts(member.name)) text.unknown.push_back(path + "." + member.name);
      if (member.name != "options" || json::kind_of(member.value) != Kind::kObject) continue;
      const auto of_jobs = envelope_members();
      for (const Member& option : json::members_of(member.value))
        if (!is_of_parts(option.name) && std::ranges::find(of_jobs, option.name) == of_jobs.end())
          text.unknown.push_back(path + ".options." + option.name);
    }
  }

  void read_common(const Members& members, const std::string& path, WorkflowSpec& spec) {
    if (const Member* name = find(members, "name")) {
      const auto given = json::string_of(name->value);
      if (!given) return complain(path + ".name", "name must be a string");
      spec.name = keep(*given);
    }
    read_inherited(members, path, spec);
    // A part's own tenant is not that of the whole's meta.
    if (says(members, "meta"))
      std::erase_if(defaults_, [](const Member& each) { return subject_of(each.name) == "meta"; });
    const Member* options = find(members, "options");
    if (options == nullptr || json::kind_of(options->value) != Kind::kObject) return;
    const Members inner = json::members_of(options->value);
    read_inherited(inner, path + ".options", spec);
    std::erase_if(defaults_,
                  [&](const Member& each) { return says(inner, subject_of(each.name)); });
    const auto of_jobs = envelope_members();
    for (const Member& option : inner)
      if (std::ranges::find(of_jobs, option.name) != of_jobs.end() &&
          std::ranges::find(kNoDefaults, option.name) == std::end(kNoDefaults))
        defaults_.push_back(option);
  }

  void read_inherited(const Members& members, const std::string& path, WorkflowSpec& spec) {
    if (const Member* priority = find(members, "priority")) {
      const auto given = json::integer_of(priority->value);
      if (!given) complain(path + ".priority", "priority must be an integer");
      if (given && spec.priority && *given != *spec.priority)
        complain(path + ".priority", "priority is given twice, with different values");
      spec.priority = given;
    }
    if (const Member* queue = find(members, "queue")) {
      const auto name = json::string_of(queue->value);
      if (!name || name->empty()) return complain(path + ".queue", "queue must be a text");
      spec.queue = keep(*name);
    }
    for (const std::string_view name : {"meta", "metadata"})
      if (const Member* meta = find(members, name);
          meta != nullptr && json::kind_of(meta->value) == Kind::kObject) {
        const Members inner = json::members_of(meta->value);
        if (const Member* tenant = find(inner, "tenant_id"))
          spec.tenant = keep(json::string_of(tenant->value).value_or(""));
      }
  }

  void read_parts(const Members& members, const std::string& path, WorkflowSpec& spec) {
    const DefaultsEnd end{defaults_};
    note_unknown(members, path);
    read_common(members, path, spec);
    const bool in_order = spec.kind == WorkflowKind::kChain || spec.kind == WorkflowKind::kGraph;
    std::string name = in_order ? "steps" : "jobs";
    const Member* parts = find(members, name);
    if (parts == nullptr) {
      const char* other = in_order ? "jobs" : "steps";
      parts = find(members, other);
      if (parts != nullptr) name = other;
    }
    if (parts == nullptr) return complain(path + "." + name, name + " is missing");
    read_steps(parts->value, path + "." + name, spec);
    if (spec.kind == WorkflowKind::kBatch) read_callbacks(members, path, spec);
    if (spec.kind == WorkflowKind::kGraph) complete_graph(spec);
  }

  void read_steps(std::string_view array, const std::string& path, WorkflowSpec& spec) {
    if (json::kind_of(array) != Kind::kArray) return complain(path, "must be an array of jobs");
    const auto elements = json::elements_of(array);
    if (elements.empty())
      return complain(
          path, path.substr(path.rfind('.') + 1) + " array must contain at least one element");
    if (elements.size() > kMostWorkflowJobs)
      return complain(path,
                      "a workflow has at most " + std::to_string(kMostWorkflowJobs) + " jobs");
    spec.steps.resize(elements.size());
    for (std::size_t i = 0; i < elements.size() && !complaint; ++i) {
      const std::string place = path + "[" + std::to_string(i) + "]";
      if (json::kind_of(elements[i]) != Kind::kObject)
        return complain(place, "a step must be an object");
      read_step(json::members_of(elements[i]), place, spec.steps[i]);
    }
  }

  void read_step(const Members& members, const std::string& path, WorkflowSpec& spec) {
    const Member* type = find(members, "type");
    const auto kind =
        type == nullptr ? std::nullopt : kind_by_name(json::string_of(type->value).value_or(""));
    const bool parts = find(members, "steps") != nullptr || find(members, "jobs") != nullptr;
    if (kind && (parts || find(members, "args") == nullptr)) {
      spec.kind = *kind;
      if (++depth_ >= json::kMaxDepth) return complain(path, "parts are nested too deep");
      read_parts(members, path, spec);
      --depth_;
      return;
    }
    read_job(members, path, spec);
  }

  void read_callbacks(const Members& members, const std::string& path, WorkflowSpec& spec) {
    const Member* callbacks = find(members, "callbacks");
    if (callbacks == nullptr) return;  // its absence is told where all of it is looked at
    if (json::kind_of(callbacks->value) != Kind::kObject)
      return complain(path + ".callbacks", "callbacks must be an object");
    for (const Member& member : json::members_of(callbacks->value)) {
      auto* const into = member.name == "on_complete"  ? &spec.on_complete
                         : member.name == "on_success" ? &spec.on_success
                         : member.name == "on_failure" ? &spec.on_failure
                                                       : nullptr;
      const std::string place = path + ".callbacks." + member.name;
      if (into == nullptr)
        return complain(place, "a callback is on_complete, on_success or on_failure");
      if (json::kind_of(member.value) == Kind::kNull) continue;
      if (json::kind_of(member.value) != Kind::kObject)
        return complain(place, "a callback must be a job");
      into->resize(1);
      read_job(json::members_of(member.value), place, into->front());
    }
  }

  /// The members that make it a step, and the rest as a job's envelope.
  void read_job(const Members& members, const std::string& path, WorkflowSpec& spec) {
    std::string envelope;
    json::ObjectWriter writer(envelope);
    Members own;  // of its options
    bool has_queue = false;
    for (const Member& member : members) {
      if (member.name == "id" || member.name == "name") {
        if (const auto name = json::string_of(member.value); name && spec.name.empty())
          spec.name = keep(*name);
      } else if (member.name == "depends_on") {
        read_depends_on(member.value, path, spec);
      } else if (member.name == "options" && json::kind_of(member.value) == Kind::kObject) {
        for (const Member& option : json::members_of(member.value)) {
          if (option.name == "callback_type") {
            read_condition(option.value, path + ".options.callback_type", spec);
            continue;
          }
          has_queue = has_queue || (option.name == "queue" && !is_null(option));
          own.push_back(option);
        }
      } else if (member.name == "callback_type") {
        read_condition(member.value, path + ".callback_type", spec);
      } else if (member.name != "workflow") {
        has_queue = has_queue || (member.name == "queue" && !is_null(member));
        writer.value(member.name, member.value);
      }
    }
    write_options(writer, members, own);
    writer.close();
    auto read = parse_envelope(envelope, now_ms_);
    if (!read) {
      if (complaint) return;
      complaint = read.error();
      complaint->message = path + ": " + complaint->message;
      complaint->subject = path + "." + complaint->subject;
      return;
    }
    if (!read->vast_priority.empty() || !read->priority_name.empty())
      return complain(path + ".priority", "priority is out of range");
    if (read->unique)
      return complain(path + ".unique", "a workflow's job cannot be unique; leave unique out");
    const Envelope& kept = text.jobs.emplace_back(std::move(*read));
    for (const std::string& name : kept.unknown) text.unknown.push_back(path + "." + name);
    spec.kind = WorkflowKind::kJob;
    spec.job = kept.spec();
    if (!has_queue) spec.job.queue = {};
  }

  /// The job's own, and those of the wholes around it of which it says nothing.
  void write_options(json::ObjectWriter& writer, const Members& members, const Members& own) {
    if (own.empty() && defaults_.empty()) return;
    json::ObjectWriter options(writer.open("options"));
    for (const Member& option : own) options.value(option.name, option.value);
    for (const Member& option : defaults_)
      if (const std::string_view subject = subject_of(option.name);
          !says(members, subject) && !says(own, subject))
        options.value(option.name, option.value);
    options.close();
  }

  static bool is_null(const Member& member) { return json::kind_of(member.value) == Kind::kNull; }

  void read_depends_on(std::string_view value, const std::string& path, WorkflowSpec& spec) {
    if (json::kind_of(value) == Kind::kNull) return;
    if (json::kind_of(value) != Kind::kArray)
      return complain(path + ".depends_on", "depends_on must be an array of step ids");
    for (const std::string_view name : json::elements_of(value)) {
      const auto other = json::string_of(name);
      if (!other) return complain(path + ".depends_on", "depends_on must be an array of step ids");
      spec.depends_on.push_back(keep(*other));
    }
  }

  void read_condition(std::string_view value, const std::string& path, WorkflowSpec& spec) {
    const std::string name = json::string_of(value).value_or("");
    const auto condition = condition_by_name(name);
    if (!condition)
      return complain(path, "callback_type must be on_complete, on_success or on_failure");
    spec.when = *condition;
    callbacks_.push_back(&spec);
  }

  /// A callback that depends on nothing comes after all steps that are none.
  void complete_graph(WorkflowSpec& spec) {
    const auto is_callback = [this](const WorkflowSpec& step) {
      return std::find(callbacks_.begin(), callbacks_.end(), &step) != callbacks_.end();
    };
    for (WorkflowSpec& step : spec.steps) {
      if (!is_callback(step) || !step.depends_on.empty()) continue;
      for (std::size_t i = 0; i < spec.steps.size(); ++i) {
        WorkflowSpec& other = spec.steps[i];
        if (is_callback(other)) continue;
        if (other.name.empty()) other.name = keep("step-" + std::to_string(i));
        step.depends_on.push_back(other.name);
      }
    }
  }

  std::uint64_t now_ms_;
  std::size_t depth_ = 0;
  std::vector<const WorkflowSpec*> callbacks_;
  /// What `options` of the wholes around a job say for it. Source: ojs-http-binding 14.1.
  Members defaults_;
};

Result<WorkflowText> read(std::string_view text, std::uint64_t now_ms,
                          void (WorkflowReader::*how)(std::string_view)) {
  if (Status status = json::check(text); !status) return status.error();
  if (json::kind_of(text) != Kind::kObject)
    return Error{Code::kInvalid, "$: a workflow must be a JSON object"}.about("$");
  WorkflowReader reader(now_ms);
  (reader.*how)(text);
  if (reader.complaint) return *reader.complaint;
  return std::move(reader.text);
}

}  // namespace

std::span<const std::string_view> workflow_members() { return kMembers; }

Result<WorkflowText> parse_workflow(std::string_view json, std::uint64_t now_ms) {
  return read(json, now_ms, &WorkflowReader::read_root);
}

Result<WorkflowText> workflow_of_job(std::string_view job, std::uint64_t now_ms) {
  return read(job, now_ms, &WorkflowReader::read_job_and_rest);
}

}  // namespace ojs_shm
