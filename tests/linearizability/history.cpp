// SPDX-License-Identifier: Apache-2.0
#include "tests/linearizability/history.hpp"

#include <spdlog/fmt/fmt.h>
#include <time.h>

#include <algorithm>

namespace ojs_shm::test {
namespace {

/// Loads before it are done, and those after it have not begun. No fence for stores: a call whose
/// effect leaves the store buffer after its return is one we want to see.
void hold_loads() {
#if defined(__x86_64__)
  asm volatile("lfence" : : : "memory");
#elif defined(__aarch64__)
  asm volatile("dsb ld\n\tisb" : : : "memory");
#endif
}

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {"enqueue", "fetch",        "ack", "requeue",
                                         "cancel",  "reprioritize", "mend"};
  return kNames[static_cast<std::size_t>(kind)];
}
std::string_view name_of(Answer answer) {
  constexpr std::string_view kNames[] = {"KILLED",    "ok",          "empty", "lost",
                                         "not found", "wrong state", "busy",  "refused"};
  return kNames[static_cast<std::size_t>(answer)];
}

bool try_without(History& history, const std::function<bool(const Operation&)>& goes,
                 const std::function<bool(const History&)>& wrong) {
  History less = history;
  std::erase_if(less.operations, goes);
  if (less.operations.size() == history.operations.size() || !wrong(less)) return false;
  history = std::move(less);
  return true;
}

}  // namespace

std::uint64_t stamp() {
  timespec now{};
  hold_loads();
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  hold_loads();
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::string describe(const Operation& o, std::uint64_t origin) {
  std::string text = fmt::format(
      "process {}  {:>8} .. {:>8}  {}", o.process, o.call - origin,
      o.returned == kNever ? "never" : std::to_string(o.returned - origin), name_of(o.kind));
  if (o.kind == Kind::kMend)
    return text + fmt::format(" after the death of process {}", o.previous);
  if (o.job != kNoJob) text += fmt::format(" job {}", o.job);
  if (o.kind == Kind::kEnqueue) text += fmt::format(" at level {}", o.level);
  if (o.kind == Kind::kReprioritize) text += fmt::format(" to level {}", o.level);
  if (o.line != 0 && (o.kind == Kind::kEnqueue || o.kind == Kind::kFetch))
    text += fmt::format(", at home in line {}", o.line);
  text += fmt::format(": {}", name_of(o.answer));
  if (o.answer == Answer::kOk && o.kind == Kind::kFetch) text += fmt::format(", level {}", o.level);
  if (o.answer == Answer::kOk && o.kind == Kind::kReprioritize)
    text += fmt::format(", was at {}", o.previous);
  if (o.answer == Answer::kWrongState || (o.answer == Answer::kOk && o.kind == Kind::kCancel))
    text += fmt::format(", found {}", engine::name_of(o.found));
  return text;
}

std::string print(const History& history) {
  std::vector<Operation> sorted = history.operations;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.call < b.call; });
  std::string text;
  for (const Operation& operation : sorted)
    text += "  " + describe(operation, sorted.front().call) + "\n";
  return text;
}

History shrink(History history, const std::function<bool(const History&)>& wrong) {
  for (bool less = true; less;) {
    less = false;
    for (unsigned job = 0; job < kMostJobs; ++job)
      less |= try_without(
          history, [job](const Operation& o) { return o.job == job; }, wrong);
    for (std::size_t i = history.operations.size(); i-- > 0;) {
      const Operation& o = history.operations[i];
      // these change something
      if (o.answer == Answer::kOk || o.answer == Answer::kPending) continue;
      const std::uint64_t call = o.call;
      less |= try_without(
          history,
          [&](const Operation& other) { return other.call == call && other.answer != Answer::kOk; },
          wrong);
    }
  }
  return history;
}

}  // namespace ojs_shm::test
