// SPDX-License-Identifier: Apache-2.0
// Method: three processes run the operations of tests/catalogue beside each other in one small
// segment, each in its turn from a pack that is shuffled anew when it is through. Kills come at any
// moment, and a repair after each. An operation may be refused, for another may have taken what it
// prepared. At the end of a round all are killed; then repair, audit, and everything that waits is
// worked off, each job once. Each round has a segment of its own.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/catalogue/operations.hpp"
#include "tests/crash/scene.hpp"
#include "tests/support/process.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

constexpr unsigned kRounds = 10, kKillsOfRound = 30, kProcesses = 3;
constexpr std::uint64_t kRunsForEachKill = 10;

/// Shared by all processes of the storm.
struct Told {
  std::atomic<std::uint64_t> next;  ///< of the pack
  std::atomic<std::uint64_t> refused;
};
Told* told = nullptr;

std::vector<const Operation*> those_in_storms() {
  std::vector<const Operation*> some;
  for (const Operation& operation : operations())
    if (*operation.not_in_storms == '\0') some.push_back(&operation);
  return some;
}

/// Takes away what an operation before has set, and the jobs that it has left.
void make_room(Hands& hands) {
  const QueueSettings plain = must(parse_queue_settings(
      R"({"paused":false,"backpressure":{"max_depth":0,"max_size_bytes":0,"strategy":"reject",)"
      R"("tenant_max_depth":0,"tenant_bounds":{}},"aging":{"enabled":false},"level_weights":{},)"
      R"("tenant_fairness":{"enabled":false}})"));
  for (const char* queue : {"default", "other"}) must(hands.admin->set_queue(queue, plain));
  // they stop at a job that one of the dead has in hand
  (void)hands.admin->bulk(BulkAction::kCancel, {});
  (void)hands.admin->bulk(BulkAction::kDropDead, {.dead_letter = true});
}

[[noreturn]] void run_operations(const SegmentName& where,
                                 const std::vector<const Operation*>& pack) {
  for (;;) {
    const Operation& operation = *pack[told->next.fetch_add(1) % pack.size()];
    try {
      Hands hands(where);
      try {
        operation.prepare(hands);
        operation.act(hands);
      } catch (const std::runtime_error&) {
        ++told->refused;
        make_room(hands);
      }
    } catch (const std::runtime_error& error) {
      std::cerr << error.what() << '\n';
      std::abort();
    }
  }
}

/// The processes of one round.
class Crew {
 public:
  Crew(SegmentName where, std::vector<const Operation*> pack)
      : where_(std::move(where)), pack_(std::move(pack)) {
    told->next = 0;
    for (pid_t& child : children_) child = start();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    for (const pid_t child : children_) kill_and_reap(child);
  }
  void replace(std::size_t member, const std::function<void()>& repair) {
    kill_and_reap(children_[member]);
    repair();
    children_[member] = start();
  }

 private:
  pid_t start() {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // outlives none of this
      run_operations(where_, pack_);
    }
    return child;
  }
  static void kill_and_reap(pid_t child) {
    ::kill(child, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "an operation ended its process: status " << status;
  }

  SegmentName where_;
  std::vector<const Operation*> pack_;
  pid_t children_[kProcesses];
};

TEST(CatalogueStorm, every_operation_beside_any_other_under_kills) {
  Seeded random;
  void* memory =
      ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  told = new (memory) Told{};
  std::vector<const Operation*> pack = those_in_storms();
  std::uint64_t runs = 0;
  for (unsigned round = 0; round < kRounds && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::shuffle(pack.begin(), pack.end(), random.numbers());
    const ScratchDirectory folder;
    const SegmentName where{"storm", folder.path()};
    {
      Quiet quiet(where);
      {
        const auto bound = std::chrono::steady_clock::now() + kBound;
        Crew crew(where, pack);
        for (unsigned kills = 1; kills <= kKillsOfRound; ++kills) {
          while (told->next < kills * kRunsForEachKill && std::chrono::steady_clock::now() < bound)
            ::sched_yield();
          crew.replace(random.between(0, kProcesses - 1),
                       [&quiet] { quiet.segment.attachment()->repair_the_dead(); });
        }
        EXPECT_LT(std::chrono::steady_clock::now(), bound) << "a process was held up";
      }
      runs += told->next;
      examine("the storm", quiet.segment, Others::kWork);
    }
    ASSERT_TRUE(remove_segment(where, Removal::kWithJobs).ok());
  }
  EXPECT_LT(told->refused, runs / 2) << "most were refused";
  std::cout << runs << " runs of " << pack.size() << " operations, " << told->refused
            << " refused, " << kRounds * (kKillsOfRound + kProcesses) << " kills\n";
  ::munmap(memory, sizeof(Told));
}

}  // namespace
}  // namespace ojs_shm::test
