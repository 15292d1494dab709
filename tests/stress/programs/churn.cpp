// SPDX-License-Identifier: Apache-2.0
// Millions of jobs come and are cancelled, or change their priority over and over, behind a live
// job that is not fetched because a better level is never empty. Their dead hints pile up where no
// consumer passes; beside a broker they must be given back long before chunks are short, and
// nothing may be refused.
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>
#include "tests/support/live_segment.hpp"

namespace {

using namespace ojs_shm;

constexpr std::string_view kUsage =
    "usage: stress_churn [--times N]   (default 1000000 of each; exit 1 on a failure)\n";

template <class T>
T must(Result<T> result, const char* what) {
  if (!result) throw std::runtime_error(fmt::format("{}: {}", what, result.error().message));
  return std::move(result).value();
}
void must(const Status& status, const char* what) {
  if (!status) throw std::runtime_error(fmt::format("{}: {}", what, status.error().message));
}

JobSpec spec_of(std::string_view args, std::int64_t priority) {
  JobSpec spec;
  spec.type = "churn";
  spec.args = args;
  spec.priority = priority;
  return spec;
}

/// Keeps level 0 busy and never empty, until it is ended.
[[noreturn]] void keep_busy(const SegmentName& where, int ready) {
  try {
    auto producer = must(Producer::attach(where), "attach");
    auto worker = must(Worker::attach(where, {}), "attach");
    const JobSpec urgent = spec_of("[0]", 0);
    for (int i = 0; i < 64; ++i) must(producer.enqueue(urgent), "enqueue of a busy job");
    if (::write(ready, "+", 1) != 1) ::_exit(3);
    for (Job job;;) {
      must(worker.try_fetch(job), "fetch of a busy job");
      if (job.priority() != 0)
        throw std::runtime_error("fetched the low job while level 0 was not empty");
      must(worker.ack(job), "ack");
      must(producer.enqueue(urgent), "enqueue of a busy job");
    }
  } catch (const std::exception& failure) {
    fmt::print(stderr, "busy process: {}\n", failure.what());
  }
  ::_exit(2);
}

class Busy {
 public:
  explicit Busy(const SegmentName& where) {
    int ready[2];
    if (::pipe(ready) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) keep_busy(where, ready[1]);
    char one = 0;
    ::close(ready[1]);
    if (::read(ready[0], &one, 1) != 1) throw std::runtime_error("the busy process did not begin");
    ::close(ready[0]);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() { end(); }
  bool lives() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

PoolInfo pool(const Observer& observer, std::string_view name) {
  for (const PoolInfo& info : observer.segment_info().pools)
    if (info.name == name) return info;
  throw std::runtime_error("no such pool");
}
std::uint64_t used(const Observer& observer, std::string_view name) {
  return pool(observer, name).used;
}

/// Chunks of the jobs that there are, which have every slot by now: a hint or a place among the
/// finished for each.
std::uint64_t needed(const Observer& observer) {
  return pool(observer, "slots").capacity / 13 + used(observer, "levels") * 2 +
         used(observer, "handles") * 4;
}

/// `step` so many times. Hints are packed again and again, so the chunks in use go up and down:
/// after each hundredth of the steps they must come down to three times what is needed, however
/// long the broker has to wait for a processor.
bool churn(const char* what, std::uint64_t times, const Observer& observer, const Busy& busy,
           const std::function<void(std::uint64_t)>& step) {
  constexpr std::uint64_t kLooks = 100, kWarmUp = 500'000;  // dead hints for most of the pool
  for (std::uint64_t i = 0; i < kWarmUp; ++i) step(i);
  const std::uint64_t most = needed(observer) * 3;
  std::uint64_t highest = 0, now = 0;
  const auto comes_down = [&] {
    highest = std::max(highest, used(observer, "chunks"));
    return test::eventually([&] { return (now = used(observer, "chunks")) <= most; });
  };
  bool flat = comes_down();
  for (std::uint64_t look = 0; look < kLooks && flat; ++look) {
    for (std::uint64_t i = 0; i < times / kLooks; ++i) step(i);
    flat = comes_down();
    if (!busy.lives()) throw std::runtime_error("the busy process ended");
  }
  fmt::print("{} {}: up to {} chunks in use, at the end {}; {} are needed: {}\n", times, what,
             highest, now, most / 3, flat ? "flat" : "TOO MANY");
  return flat;
}

int run(std::uint64_t times) {
  const test::LiveSegment segment;
  const SegmentName where = segment.where();
  auto producer = must(Producer::attach(where), "attach");
  auto observer = must(Observer::attach(where), "attach");
  const std::int64_t low = 4;
  const JobIdText live = must(producer.enqueue(spec_of("[1]", low)), "enqueue of the live job");
  bool flat = true;
  {
    const Busy busy(where);
    const JobSpec behind = spec_of("[2]", low);
    flat = churn("enqueued and cancelled", times, observer, busy, [&](std::uint64_t) {
      const JobIdText id = must(producer.enqueue(behind), "enqueue");
      must(producer.cancel(id.view()), "cancel");
    });
    const JobIdText moved = must(producer.enqueue(behind), "enqueue of the moving job");
    flat = churn("re-prioritised", times, observer, busy,
                 [&](std::uint64_t i) {
                   must(producer.reprioritize(moved.view(),
                                              low - 1 + static_cast<std::int64_t>(i % 2)),
                        "reprioritize");
                 }) &&
           flat;
  }
  // What is left: the busy jobs, the live one and the one that moved.
  auto worker = must(Worker::attach(where, {}), "attach");
  std::uint64_t low_jobs = 0;
  bool live_came = false;
  for (Job job; worker.fetch(job, std::chrono::milliseconds(1000)).ok();) {
    low_jobs += job.priority() != 0 ? 1 : 0;
    live_came = live_came || job.id() == live.view();
    must(worker.ack(job), "ack");
  }
  const std::vector<Violation> violations = observer.audit();
  for (const Violation& violation : violations)
    fmt::print("invariant {}: {}\n", violation.invariant, violation.text);
  fmt::print("at the end {} low jobs, the live one among them: {}; {} findings\n", low_jobs,
             live_came ? "yes" : "no", violations.size());
  return flat && live_came && low_jobs == 2 && violations.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t times = 1'000'000;
  const std::string_view last = argc == 3 ? argv[2] : "";
  if (argc == 3 && std::string_view(argv[1]) == "--times" && !last.empty() &&
      std::from_chars(last.data(), last.data() + last.size(), times).ptr ==
          last.data() + last.size() &&
      times >= 1000) {
  } else if (argc != 1) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  try {
    return run(times);
  } catch (const std::exception& failure) {
    fmt::print("FAILED: {}\n", failure.what());
    return 1;
  }
}
