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
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/catalogue/operations.hpp"
#include "tests/crash/scene.hpp"
#include "tests/support/process.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

constexpr unsigned kRounds = 8, kKillsOfRound = 12, kProcesses = 3;
constexpr std::uint64_t kRunsForEachKill = 6;

/// Shared by all processes of the storm.
struct Told {
  std::atomic<std::uint64_t> next;     ///< of the pack
  std::atomic<std::uint64_t> refused;
};
Told* told = nullptr;

std::vector<const Operation*> those_in_storms() {
  std::vector<const Operation*> some;
  for (const Operation& operation : operations())
    if (*operation.not_in_storms == '\0') some.push_back(&operation);
  return some;
}

[[noreturn]] void run_operations(const SegmentName& where,
                                 const std::vector<const Operation*>& pack) {
  for (;;) {
    const std::size_t chosen = told->next.fetch_add(1) % pack.size();
    try {
      Hands hands(where);
      pack[chosen]->prepare(hands);
      pack[chosen]->act(hands);
    } catch (const std::runtime_error&) {
      ++told->refused;
    }
  }
}

void kill_and_reap(pid_t child) {
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      << "an operation ended its process: status " << status;
}

TEST(CatalogueStorm, every_operation_beside_any_other_under_kills) {
  Seeded random;
  void* memory =
      ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  told = new (memory) Told{};
  std::vector<const Operation*> pack = those_in_storms();
  const auto shuffled = [&random, &pack] {
    std::shuffle(pack.begin(), pack.end(), random.numbers());
    return pack;
  };
  std::uint64_t runs = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const ScratchDirectory folder;
    const SegmentName where{"storm", folder.path()};
    {
      Quiet quiet(where);
      const std::vector<const Operation*> order = shuffled();
      const auto start = [&] {
        const pid_t child = ::fork();
        if (child == 0) run_operations(where, order);
        return child;
      };
      told->next = 0;
      pid_t children[kProcesses];
      for (pid_t& child : children) child = start();
      const auto bound = std::chrono::steady_clock::now() + kBound;
      for (unsigned kills = 1; kills <= kKillsOfRound; ++kills) {
        while (told->next < kills * kRunsForEachKill && std::chrono::steady_clock::now() < bound)
          ::sched_yield();
        pid_t& victim = children[random.between(0, kProcesses - 1)];
        kill_and_reap(victim);
        if (HasFatalFailure()) return;
        quiet.segment.attachment()->repair_the_dead();
        victim = start();
      }
      for (const pid_t child : children) kill_and_reap(child);
      EXPECT_LT(std::chrono::steady_clock::now(), bound) << "a process was held up";
      runs += told->next;
      examine("the storm", quiet.segment, Others::kWork);
      if (HasFailure()) return;
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
