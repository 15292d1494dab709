// SPDX-License-Identifier: Apache-2.0
#include "bench/stage.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <thread>

namespace ojs_shm::bench {

namespace {

constexpr unsigned kLongestRunSeconds = 120;
constexpr unsigned kEndGate = 3;
constexpr unsigned kBatches = 40;
constexpr unsigned kRoundTripsPerBatch = 50;

std::vector<unsigned> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<unsigned> cores;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  return cores;
}

// Read before any part is pinned, so that a thread's own pinning does not shrink the answer.
const std::vector<unsigned> cores_at_start = usable_cores();

void pin_to(unsigned core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

long preemptions_so_far() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

double processor_time_ns() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) * 1e9 + static_cast<double>(spent.tv_nsec);
}

}  // namespace

unsigned core_number(unsigned which) {
  if (cores_at_start.empty()) return 0;
  return cores_at_start[std::min<std::size_t>(which, cores_at_start.size() - 1)];
}

bool two_cores_available() { return cores_at_start.size() >= 2; }

void Stage::Part::begin() {
  Record& record = stage_.board_->records[self_];
  record.thread = static_cast<pid_t>(::syscall(SYS_gettid));
  ns_per_tick();
  stage_.meet(1);
  stage_.bounce_line(self_);
  stage_.meet(2);
  record.preemptions = preemptions_so_far();
  record.begin_cpu_ns = processor_time_ns();
  record.begin_ticks = ticks();
}

void Stage::Part::end(std::uint64_t at_ticks) {
  Record& record = stage_.board_->records[self_];
  record.end_ticks = at_ticks;
  record.end_cpu_ns = processor_time_ns();
  record.preemptions = preemptions_so_far() - record.preemptions;
  stage_.meet(kEndGate);
  stage_.bounce_line(self_);
}

pid_t Stage::Part::thread_of(unsigned part) const { return stage_.board_->records[part].thread; }

void Stage::meet(unsigned gate) {
  const auto everyone = static_cast<std::uint32_t>(parts_.size()) * gate;
  board_->arrived.fetch_add(1);
  while (board_->arrived.load() < everyone) {
    if (gate == kEndGate) {
      ::usleep(50);  // a part that is done must not take the core from one that still works
    } else if (parts_.size() > 2) {
      ::sched_yield();  // someone I wait for may share my core
    } else {
      pause_briefly();
    }
  }
}

void Stage::bounce_line(unsigned self) {
  if (!two_cores_apart() || self > 1) return;
  std::atomic<std::uint32_t>& ball = board_->ball;
  const std::uint32_t start =
      board_->records[self].round_trip_ns > 0 ? kBatches * kRoundTripsPerBatch * 2 : 0;
  std::array<double, kBatches> batches{};
  std::uint32_t next = start + self;
  for (double& batch : batches) {
    const std::uint64_t from = ticks();
    for (unsigned i = 0; i < kRoundTripsPerBatch; ++i, next += 2) {
      while (ball.load(std::memory_order_acquire) != next) pause_briefly();
      ball.store(next + 1, std::memory_order_release);
    }
    batch = ns_between(from, ticks()) / kRoundTripsPerBatch;
  }
  std::nth_element(batches.begin(), batches.begin() + kBatches / 2, batches.end());
  double& worst = board_->records[self].round_trip_ns;
  worst = std::max(worst, batches[kBatches / 2]);
}

void Stage::act(unsigned self) {
  pin_to(core_number(parts_[self].core));
  Part part(*this, self);
  try {
    parts_[self].action(part);
  } catch (const std::exception& e) {
    std::snprintf(board_->records[self].trouble, sizeof Record::trouble, "part %u: %s", self,
                  e.what());
  }
}

void Stage::play_threads() {
  std::vector<std::thread> threads;
  for (unsigned self = 0; self < parts_.size(); ++self)
    threads.emplace_back([this, self] { act(self); });
  for (std::thread& thread : threads) thread.join();
}

void Stage::play_processes() {
  std::vector<pid_t> children;
  const pid_t parent = ::getpid();
  std::fflush(nullptr);
  for (unsigned self = 0; self < parts_.size(); ++self) {
    const pid_t child = ::fork();
    if (child < 0) {
      const int why = errno;
      for (pid_t pid : children) ::kill(pid, SIGKILL);
      for (pid_t pid : children) ::waitpid(pid, nullptr, 0);
      throw std::system_error(why, std::generic_category(), "fork");
    }
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      ::alarm(kLongestRunSeconds);
      act(self);
      // Not exit(): the peer belongs to the parent, who removes it.
      ::_exit(board_->records[self].trouble[0] == '\0' ? 0 : 1);
    }
    children.push_back(child);
  }
  for (std::size_t left = children.size(); left > 0; --left) {
    int status = 0;
    pid_t gone = -1;
    std::size_t who = 0;
    // Only our parts are waited for by id: a server that the peer started is another child of this
    // process.
    siginfo_t info{};
    while (gone < 0) {
      ::waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
      const auto found = std::find(children.begin(), children.end(), info.si_pid);
      if (found == children.end()) {
        std::snprintf(board_->records[0].trouble, sizeof Record::trouble, "the peer's server died");
        for (pid_t pid : children) {
          if (pid > 0) ::kill(pid, SIGKILL);
        }
        ::waitpid(info.si_pid, &status, 0);
        continue;
      }
      who = static_cast<std::size_t>(found - children.begin());
      gone = ::waitpid(info.si_pid, &status, 0);
    }
    children[who] = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    char* trouble = board_->records[who].trouble;
    if (trouble[0] == '\0' && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
      std::snprintf(trouble, sizeof Record::trouble, "part %zu: ended by signal %d", who,
                    WTERMSIG(status));
    }
    for (pid_t pid : children) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
  }
}

Outcome Stage::play() {
  new (&*board_) Board;
  if (cast_ == Cast::kProcesses) {
    play_processes();
  } else {
    play_threads();
  }
  Outcome outcome;
  std::uint64_t first = ~std::uint64_t{0};
  std::uint64_t last = 0;
  for (unsigned self = 0; self < parts_.size(); ++self) {
    const Record& record = board_->records[self];
    if (outcome.trouble.empty()) outcome.trouble = record.trouble;
    first = std::min(first, record.begin_ticks);
    last = std::max(last, record.end_ticks);
    outcome.preemptions += record.preemptions;
    outcome.core_share =
        std::min(outcome.core_share, (record.end_cpu_ns - record.begin_cpu_ns) /
                                         ns_between(record.begin_ticks, record.end_ticks));
    outcome.line_round_trip_ns = std::max(outcome.line_round_trip_ns, record.round_trip_ns);
  }
  if (outcome.trouble.empty() && last <= first)
    outcome.trouble = "a part ended without reaching its end";
  outcome.seconds = ns_between(first, last) * 1e-9;
  return outcome;
}

}  // namespace ojs_shm::bench
