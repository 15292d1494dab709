// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/refusal.hpp"

#include <unistd.h>

#include "tools/shell/colour.hpp"
#include "tools/shell/output.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::shell {

std::string error_as_json(const Error& error, std::uint64_t line) {
  std::string text;
  json::ObjectWriter outer(text);
  {
    json::ObjectWriter inner(outer.open("error"));
    inner.text("code", code_name(error.code));
    inner.text("message", error.message);
    if (!error.subject.empty()) inner.text("subject", error.subject);
    const bool full = error.code == Code::kQueueFull || error.code == Code::kSegmentFull;
    if (full && error.bound != 0) inner.number("depth", static_cast<std::int64_t>(error.depth));
    if (error.bound != 0 && (full || error.code == Code::kTooLarge))
      inner.number("bound", static_cast<std::int64_t>(error.bound));
    if (!error.unit.empty()) inner.text("unit", error.unit);
    if (error.code == Code::kNotFound && error.state == "gone") inner.boolean("gone", true);
    if (error.code == Code::kQueueFull) inner.text("queue", error.subject);
    if (error.tenant) inner.text("tenant", *error.tenant);
    if (!error.strategy.empty()) inner.text("strategy", error.strategy);
    if (error.retry_after_ms != 0)
      inner.number("retry_after_ms", std::int64_t{error.retry_after_ms});
    if (line != 0) inner.number("line", static_cast<std::int64_t>(line));
    inner.close();
  }
  outer.close();
  return text;
}

ExitCode report(const Error& error, bool json) {
  const std::string retry = error.retry_after_ms == 0
                                ? ""
                                : fmt::format("; try again in {:.1f} s",
                                              static_cast<double>(error.retry_after_ms) / 1000);
  const std::string text = printable(error.message, true) + retry;
  say("{}\n", json ? error_as_json(error) : has_colours(STDERR_FILENO) ? red(text) : text);
  return exit_code_for(error.code);
}

}  // namespace ojs_shm::shell
