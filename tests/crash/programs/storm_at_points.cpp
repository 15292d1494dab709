// SPDX-License-Identifier: Apache-2.0
// The same storm, but here processes also kill themselves, each right after a shared write of a
// kind chosen by lot, or of a kind at which none has died yet. So kills meet rare crash points
// soon after frequent ones, also those that last a nanosecond and those inside a repair. Prints at
// how many of the points a process died; which of them a storm comes to is a matter of its load and
// length. With --points N it fails when there were fewer.
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "shm/atomics.hpp"
#include "tests/support/storm/storm_command.hpp"

namespace {

using namespace ojs_shm;
using test::Dice;
using test::Lane;

constexpr auto kPoints = static_cast<std::size_t>(shm::Point::kCount);

/// Shared by all processes of the storm.
struct Deaths {
  test::LedgerWord<std::uint64_t> at[kPoints];
};
Deaths* deaths = nullptr;

Lane* lane_of_this_process = nullptr;

/// Where this thread is going to die.
struct Doom {
  explicit Doom(Dice dice)
      : point(dice.between(1, kPoints - 1)),
        passes(dice.any_magnitude(1, 2000)),
        fresh(dice.any_magnitude(1, 20)),
        writes(dice.any_magnitude(1, 1'000'000)) {}
  std::uint64_t point, passes;  // after so many passes of this point,
  std::uint64_t fresh;          // or of points at which no process has died,
  std::uint64_t writes;         // or else after so many writes of any kind
};

void die_when_doomed(shm::Access access, shm::Point point, const void*) {
  if (access != shm::Access::kWritten) return;
  // From here on no process is born again, and a process has to tidy up.
  if (lane_of_this_process->ledger.phase() >= test::Phase::kWorkersStop) return;
  thread_local Doom doom(
      Dice(lane_of_this_process->seed ^ reinterpret_cast<std::uintptr_t>(&doom)));
  const auto number = static_cast<std::size_t>(point);
  const bool chosen = number == doom.point && --doom.passes == 0;
  const bool fresh = deaths->at[number].load() == 0 && --doom.fresh == 0;
  if (!chosen && !fresh && --doom.writes != 0) return;
  deaths->at[number].fetch_add(1);
  lane_of_this_process->ledger.life(lane_of_this_process->life)
      .kill_sent_ns.store(test::monotonic_ns());
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

void at_birth(Lane& lane) {
  lane_of_this_process = &lane;
  // A process that never dies of itself meets only the storm's own strikes.
  if (Dice(lane.seed ^ 0xD1CEU).chance(0.7)) shm::process_hook = die_when_doomed;
}

}  // namespace

int main(int argc, char** argv) {
  void* shared =
      ::mmap(nullptr, sizeof(Deaths), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  deaths = static_cast<Deaths*>(shared);
  std::vector<char*> others;
  std::size_t least = 0, met = 0;
  for (int i = 0; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--points" && i + 1 < argc)
      least = std::strtoull(argv[++i], nullptr, 10);
    else
      others.push_back(argv[i]);
  }
  const int code = test::storm_command(static_cast<int>(others.size()), others.data(), at_birth);
  std::uint64_t all = 0;
  std::string missed;
  for (std::size_t point = 1; point < kPoints; ++point) {
    all += deaths->at[point].load();
    if (deaths->at[point].load() != 0)
      ++met;
    else
      missed += fmt::format(" {}", shm::point_name(static_cast<shm::Point>(point)));
  }
  if (all != 0) {
    fmt::print(
        "  {} processes died at a crash point of their own, at {} of {} points; at none of:{}\n",
        all, met, kPoints - 1, missed.empty() ? " -" : missed);
  }
  if (met >= least) return code;
  fmt::print("  FAILED: at {} of at least {} points\n", met, least);
  return 1;
}
