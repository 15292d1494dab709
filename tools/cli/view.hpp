// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/job.hpp>
#include <ojs_shm/observer.hpp>

#include "tools/cli/command.hpp"
#include "tools/shell/output.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::cli {

/// A JSON object, written by `fill(ObjectWriter&)`.
template <class Fill>
std::string object(Fill fill) {
  std::string text;
  json::ObjectWriter writer(text);
  fill(writer);
  writer.close();
  return text;
}
inline void count(json::ObjectWriter& writer, std::string_view name, std::uint64_t number) {
  writer.number(name, static_cast<std::int64_t>(number));
}

/// One JSON document and a line end to stdout.
void print_line(std::string_view json);
/// What a setter has done: {"done":true} or a sentence, which --quiet leaves out.
template <class... Args>
void told(const Request& request, fmt::format_string<Args...> format, Args&&... args) {
  if (request.json)
    print_line("{\"done\":true}");
  else
    shell::inform(format, std::forward<Args>(args)...);
}

/// A row "member, value" for each member of an object; inner values as JSON.
void print_members(std::string_view object);
/// A row for each job, or its JSON.
void print_jobs(const std::vector<JobInfo>& jobs, bool as_json);

void write_queue(json::ObjectWriter& writer, const QueueInfo& queue);

/// For a number that is in no convention's range, as it was written.
Error out_of_range(const Observer& observer, std::string_view priority);
/// A number, or a name that the segment's convention knows. Throws shell::Refusal; an unknown name
/// lists the names.
std::int64_t parse_priority(const Observer& observer, const std::string& text);
/// Throws shell::Refusal, which lists the states.
State parse_state(const std::string& text);

}  // namespace ojs_shm::cli
