// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/exported_progress.hpp"

#include <algorithm>

#include "worker_api/json/time_text.hpp"

namespace ojs_shm::internal {

void write_exported_progress(json::ObjectWriter& writer, const JobInfo& job) {
  if (json::check(job.last_checkpoint)) writer.value("last_checkpoint", job.last_checkpoint);
  if (job.progress < 0) return;
  writer.number("progress", std::min(job.progress, 1.0));
  if (job.progress_at_ms == 0) return;
  if (!job.progress_message.empty()) writer.text("progress_message", job.progress_message);
  if (json::check(job.progress_data))
    writer.value("progress_data", job.progress_data);
  else if (!job.progress_data.empty())
    writer.text("progress_data_text", job.progress_data);
  writer.text("progress_at", print_timestamp(job.progress_at_ms));
}

void take_exported_progress(ExportedJob& exported, const json::Member& member,
                            json::Complaint& complaint) {
  JobInfo& job = exported.job;
  if (member.name == "progress") {
    const auto number = json::number_of(member.value);
    if (!number || *number < 0 || *number > 1)
      return complaint.wrong_kind(member.name, "a number from 0 to 1", member.value);
    job.progress = *number;
  } else if (member.name == "last_checkpoint") {
    job.last_checkpoint = json::compact(member.value);
  } else if (member.name == "progress_data") {
    job.progress_data = json::compact(member.value);
  } else {
    const std::string text = json::text(member.name, member.value, complaint).value_or("");
    if (complaint.raised()) return;
    if (member.name == "progress_message") {
      job.progress_message = text;
    } else if (member.name == "progress_data_text") {
      job.progress_data = text;
    } else {
      const ParsedMs parsed = parse_timestamp(text);
      if (!parsed) return complaint.about(member.name, text_of(parsed.fault));
      job.progress_at_ms = parsed.ms < 1 ? 1 : static_cast<std::uint64_t>(parsed.ms);
    }
  }
}

}  // namespace ojs_shm::internal
