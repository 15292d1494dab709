// SPDX-License-Identifier: Apache-2.0
// The line of an export that tells of a running workflow.
#include <algorithm>
#include <iterator>
#include <string>

#include "worker_api/json/envelope_export.hpp"
#include "worker_api/json/envelope_fields.hpp"
#include "worker_api/json/export_line.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm {
namespace {

using json::Complaint;
using json::Member;
using json::ObjectWriter;

constexpr std::string_view kConditions[] = {"success", "failure", "complete", "callback"};
constexpr std::uint16_t kMostNumber = 0xFFFE;

template <class List, class Write>
void write_array(std::string& out, const List& list, Write write) {
  out += '[';
  bool first = true;
  for (const auto& each : list) {
    if (!first) out += ',';
    first = false;
    write(each);
  }
  out += ']';
}

void write_set(ObjectWriter& writer, std::string_view name, std::uint16_t set) {
  if (set != ExportedWorkflow::kNothing) writer.number(name, std::int64_t{set});
}

void write_member(std::string& out, const ExportedMember& member) {
  ObjectWriter writer(out);
  write_set(writer, "waits", member.waits);
  write_set(writer, "gate", member.gate);
  if (member.when != 0) writer.text("when", kConditions[member.when % std::size(kConditions)]);
  if (member.waiting) writer.boolean("waiting", true);
  if (member.failed) writer.boolean("failed", true);
  // the inner object of {"job":{...}}
  if (member.job) writer.value("job", json::members_of(print_export(*member.job)).front().value);
  writer.close();
}

std::uint16_t number_in(const Member& member, Complaint& complaint) {
  return static_cast<std::uint16_t>(
      json::whole_number(member.name, member.value, kMostNumber, complaint).value_or(0));
}

/// Whether the value is an array; complains when not.
bool is_array(const Member& member, Complaint& complaint) {
  if (json::kind_of(member.value) == json::Kind::kArray) return true;
  complaint.wrong_kind(member.name, "an array", member.value);
  return false;
}

ExportedMember read_member(std::string_view object, Complaint& complaint) {
  ExportedMember read;
  if (json::kind_of(object) != json::Kind::kObject) {
    complaint.wrong_kind("members", "an array of objects", object);
    return read;
  }
  for (const Member& member : json::members_of(object)) {
    if (member.name == "waits") {
      read.waits = number_in(member, complaint);
    } else if (member.name == "gate") {
      read.gate = number_in(member, complaint);
    } else if (member.name == "when") {
      const std::string when = json::text(member.name, member.value, complaint).value_or("");
      const auto found = std::find(std::begin(kConditions), std::end(kConditions), when);
      if (found == std::end(kConditions))
        complaint.wrong_kind(member.name, "success, failure, complete or callback", member.value);
      else
        read.when = static_cast<std::uint8_t>(found - std::begin(kConditions));
    } else if (member.name == "waiting") {
      read.waiting = json::boolean(member.name, member.value, complaint).value_or(false);
    } else if (member.name == "failed") {
      read.failed = json::boolean(member.name, member.value, complaint).value_or(false);
    } else if (member.name == "job") {
      const auto job = read_export_line("{\"job\":" + std::string(member.value) + "}");
      if (job)
        read.job = std::get<ExportedJob>(*job);
      else
        complaint.raise(job.error());
    } else {
      complaint.about(member.name, "is not a member of a workflow's member");
    }
    if (complaint.raised()) break;
  }
  return read;
}

}  // namespace

std::string print_export(const ExportedWorkflow& workflow) {
  return internal::export_line("workflow", [&](ObjectWriter& writer) {
    writer.text("id", workflow.id);
    if (workflow.created_at_ms != 0)
      writer.text("created_at", print_timestamp(workflow.created_at_ms));
    writer.value("tree", workflow.tree);
    std::string& sets = writer.open("sets");
    write_array(sets, workflow.sets, [&](const auto& set) {
      write_array(sets, set, [&](std::uint16_t member) { sets += std::to_string(member); });
    });
    write_set(writer, "result", workflow.result);
    std::string& members = writer.open("members");
    write_array(members, workflow.members,
                [&](const ExportedMember& member) { write_member(members, member); });
  });
}

Result<ExportLine> read_exported_workflow(std::string_view object) {
  ExportedWorkflow workflow;
  Complaint complaint;
  if (json::kind_of(object) != json::Kind::kObject)
    complaint.wrong_kind("workflow", "an object", object);
  else
    for (const Member& member : json::members_of(object)) {
      if (member.name == "id") {
        workflow.id = json::text(member.name, member.value, complaint).value_or("");
      } else if (member.name == "created_at") {
        const ParsedMs parsed =
            parse_timestamp(json::text(member.name, member.value, complaint).value_or(""));
        if (parsed)
          workflow.created_at_ms = parsed.ms < 1 ? 1 : static_cast<std::uint64_t>(parsed.ms);
        else
          complaint.about(member.name, text_of(parsed.fault));
      } else if (member.name == "tree") {
        workflow.tree = json::compact(member.value);
      } else if (member.name == "result") {
        workflow.result = number_in(member, complaint);
      } else if (member.name == "sets" && is_array(member, complaint)) {
        for (const std::string_view set : json::elements_of(member.value)) {
          const Member each{member.name, set};
          if (!is_array(each, complaint)) break;
          auto& numbers = workflow.sets.emplace_back();
          for (const std::string_view number : json::elements_of(set))
            numbers.push_back(number_in({member.name, number}, complaint));
        }
      } else if (member.name == "members" && is_array(member, complaint)) {
        for (const std::string_view each : json::elements_of(member.value)) {
          workflow.members.push_back(read_member(each, complaint));
          if (complaint.raised()) break;
        }
      } else if (!complaint.raised()) {
        complaint.about(member.name, "is not a member of workflow");
      }
      if (complaint.raised()) break;
    }
  // each waits for one, each has one as its gate, and the result is one
  if (workflow.sets.size() > workflow.members.size() * 2 + 1)
    complaint.about("sets", "are more than the members can name");
  for (const auto& set : workflow.sets)
    if (set.size() > workflow.members.size())
      complaint.about("sets", "name more members than there are");
  if (complaint.raised()) return complaint.error();
  return ExportLine(std::move(workflow));
}

}  // namespace ojs_shm
