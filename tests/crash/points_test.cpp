// SPDX-License-Identifier: Apache-2.0
// Method: each operation runs once in a child that only records the shared writes it makes; then
// once more for each of those writes in a new child, which kills itself with SIGKILL right after
// that write. Each time the parent lets other handles work before any repair, repairs, audits, and
// compares the books: no job has ended that the whole operation does not end, none has changed by
// half, and what an enqueue returned stands. No threads but those of the few operations that need
// two, and no random numbers. In the end the table of docs/crash_recovery.md is held against what
// was killed where.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <vector>

#include "engine/tables/hint_lives.hpp"
#include "shm/ring_splice.hpp"
#include "tests/catalogue/operations.hpp"
#include "tests/crash/scene.hpp"
#include "tests/support/process.hpp"

namespace ojs_shm::test {
namespace {

using shm::Access;
using shm::Point;

constexpr std::size_t kMostWrites = 4096, kMostAccepted = 64;

/// Shared with the child; survives it.
struct Ledger {
  std::uint32_t writes = 0;    ///< how many it made in act()
  std::uint32_t kill_at = 0;   ///< 1-based; 0: never
  std::uint32_t prepared = 0;  ///< prepare() returned
  std::uint32_t returned = 0;  ///< act() returned
  std::uint16_t points[kMostWrites] = {};
  std::uint32_t accepted = 0;  ///< how many jobs act() enqueued, as far as it was told
  char ids[kMostAccepted][40] = {};
};
Ledger* ledger = nullptr;
/// who, by point, in this file
std::array<std::set<std::string>, static_cast<std::size_t>(Point::kCount)> killed{};
std::uint32_t kills_of_operations = 0, kills_of_repairers = 0;
constexpr const char* kRepairer = "repairer";  ///< as the table calls it

void on_accepted(const std::string& id) {
  if (ledger->accepted >= kMostAccepted) return;
  id.copy(ledger->ids[ledger->accepted], sizeof ledger->ids[0] - 1);
  ++ledger->accepted;
}

/// The state of each job that act() enqueued, in that order; none of those that are gone.
std::vector<std::optional<State>> accepted_in(const Segment& segment) {
  const Jobs jobs = jobs_in(segment);
  std::vector<std::optional<State>> states;
  for (std::uint32_t i = 0; i < ledger->accepted; ++i) {
    const auto found = jobs.find(ledger->ids[i]);
    states.push_back(found == jobs.end() ? std::optional<State>() : found->second.state);
  }
  return states;
}
bool stands(const std::optional<State>& state) { return state && !is_terminal(*state); }

void on_access(Access access, Point point, const void*) {
  if (access != Access::kWritten) return;
  static std::mutex one_by_one;
  const std::lock_guard lock(one_by_one);
  const std::uint32_t n = ++ledger->writes;
  if (n <= kMostWrites) ledger->points[n - 1] = static_cast<std::uint16_t>(point);
  if (n == ledger->kill_at) ::kill(::getpid(), SIGKILL);
}

class CrashPoints : public testing::Test {
 protected:
  void SetUp() override {
    void* memory =
        ::mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    ledger = new (memory) Ledger;
  }
  void TearDown() override { ::munmap(ledger, sizeof(Ledger)); }

  /// Runs the operation in a child that dies after its kill_at-th write. True when it was killed.
  /// `look` is called when it stands before the act.
  static bool run_child(const Operation& operation, const SegmentName& where, std::uint32_t kill_at,
                        const std::function<void()>& look = {}) {
    *ledger = Ledger{};
    ledger->kill_at = kill_at;
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        auto* hands = new Hands(where);  // never destroyed: a killed process closes nothing
        operation.prepare(*hands);
        ledger->prepared = 1;
        hands->accepted = on_accepted;
        if (look) ::raise(SIGSTOP);
        shm::process_hook = on_access;
        operation.act(*hands);
        shm::process_hook = nullptr;
        ledger->returned = 1;
      } catch (const std::exception& error) {
        std::cerr << operation.name << ": " << error.what() << '\n';
        ::_exit(3);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, look ? WUNTRACED : 0);
    if (WIFSTOPPED(status)) {
      look();
      ::kill(child, SIGCONT);
      ::waitpid(child, &status, 0);
    }
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0)
        << operation.name << " failed in the child";
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

  /// Repairs in a child that dies after its kill_at-th write. True when it was killed.
  static bool run_repairer(const SegmentName& where, std::uint32_t kill_at) {
    *ledger = Ledger{};
    ledger->kill_at = kill_at;
    const pid_t child = ::fork();
    if (child == 0) {
      auto* segment = new auto(Segment::attach(where));
      shm::thread_hook = on_access;
      if (segment->ok()) (*segment)->attachment()->repair_the_dead();
      ::_exit(segment->ok() ? 0 : 3);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "the repairer failed";
    return WIFSIGNALED(status);
  }
};

/// In which consumers take all jobs right after the splice has changed a link: it cannot know which
/// way they went.
Operation pack_rings_overtaken() {
  static Hands* overtaking = nullptr;
  const auto overtake = [](Access access, Point point, const void* word) {
    on_access(access, point, word);
    if (access != Access::kWritten || point != Point::kSpliceDone || overtaking == nullptr) return;
    Hands& hands = *std::exchange(overtaking, nullptr);
    while (hands.worker->try_fetch(hands.job).ok()) must(hands.worker->ack(hands.job));
  };
  return {"pack_rings_overtaken",
          [](Hands& h) {
            h.stop_clock();  // one write less for each job that has not waited
            h.put(9);
            for (int i = 0; i < 80; ++i) must(h.producer->cancel(h.put(9)));
            for (int i = 0; i < 20; ++i) h.put(9);
          },
          [overtake](Hands& h) {
            overtaking = &h;
            shm::thread_hook = overtake;
            engine::Actor& actor = h.handle->actor();
            shm::splice(actor.rings(),
                        shm::Rings::find(h.handle->store().queue(0).rings, engine::normal_ring(9)),
                        engine::any_lives);
            if (!actor.rings().has_leaks()) throw std::runtime_error("head was not near");
            actor.collect_leaks();
            shm::thread_hook = nullptr;
          }};
}

const std::vector<Operation>& all_operations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> both = operations();
    both.insert(both.end(), operations_of_threads().begin(), operations_of_threads().end());
    both.push_back(pack_rings_overtaken());
    return both;
  }();
  return all;
}

/// One of the operations.
class Operations : public CrashPoints, public testing::WithParamInterface<std::string> {
 protected:
  const Operation& operation() const {
    const std::vector<Operation>& all = all_operations();
    return *std::find_if(all.begin(), all.end(),
                         [](const Operation& one) { return one.name == GetParam(); });
  }
  const ScratchDirectory folder;
  const SegmentName where{"crash", folder.path()};
};

TEST_P(Operations, FS_T02_killed_after_every_shared_write) {
  constexpr int kOthers = 1000;
  std::uint32_t writes = 0;
  // What the whole operation does: which of the jobs that it puts in are there at its end, how many
  // of those before it ends, how many come, and how many jobs others can do after it.
  std::vector<std::optional<State>> whole;
  std::size_t ends = 0, comes = 0;
  int others = 0;
  bool drops = false;  // then a process that comes by may end another one
  for (std::uint32_t at = 0; at <= writes; ++at) {
    SCOPED_TRACE("killed after write " + std::to_string(at) + " (" +
                 std::string(at == 0
                                 ? "never"
                                 : shm::point_name(static_cast<Point>(ledger->points[at - 1]))) +
                 ")");
    {
      Quiet quiet(where);
      Jobs before;
      const bool dead = run_child(operation(), where, at, [&] { before = jobs_in(quiet.segment); });
      if (at == 0) {
        ASSERT_EQ(ledger->returned, 1U);
        writes = ledger->writes;
        ASSERT_LE(writes, kMostWrites);
        whole = accepted_in(quiet.segment);
        ends = ended(before, quiet.segment);
        comes = put_in(before, quiet.segment);
        for (const QueueInfo& queue : Observer::attach(quiet.segment).value().queues())
          drops = drops || queue.strategy == BackpressureStrategy::kDropOldest;
      } else if (dead) {
        ++kills_of_operations;
        killed[ledger->points[at - 1]].insert(GetParam());
      }
      // At a given point in some of the operations, and not in others.
      const bool come_by = (at + GetParam().size()) % 2 == 1 && !drops;
      if (come_by) others_come_by(quiet.segment);
      const int done = others_work(quiet.segment, kOthers);
      if (at == 0)
        others = done;
      else if (others == kOthers) {
        EXPECT_EQ(done, kOthers) << "no room is left for others";
      }
      quiet.segment.attachment()->repair_the_dead();
      EXPECT_EQ(come_by ? "" : half_done(before, quiet.segment), "");
      EXPECT_LE(ended(before, quiet.segment), ends)
          << "jobs have ended that the whole operation does not end";
      if (const std::size_t came = put_in(before, quiet.segment); operation().all_or_none) {
        EXPECT_TRUE(came == 0 || came == comes) << came << " jobs of " << comes << " came";
      }
      const auto accepted = accepted_in(quiet.segment);
      for (std::size_t i = 0; i < accepted.size(); ++i)
        EXPECT_TRUE(stands(accepted[i]) || !stands(whole.at(i)))
            << ledger->ids[i] << " was accepted and is gone";
      if (HasFailure()) return;
      examine(GetParam(), quiet.segment);
      if (HasFatalFailure()) return;
    }
    ASSERT_TRUE(remove_segment(where, Removal::kWithJobs).ok());
  }
  ASSERT_GT(writes, 0U) << "it writes nothing";
}

/// The repairer dies as well, after each of its first hundred writes and some of the rest, and
/// another one begins again.
using Repairers = Operations;
TEST_P(Repairers, FS_T02_killed_after_every_shared_write) {
  std::uint32_t writes = 0;
  {
    Quiet quiet(where);
    run_child(operation(), where, 0);
    writes = ledger->writes;
  }
  ASSERT_TRUE(remove_segment(where, Removal::kWithJobs).ok());
  std::vector<std::uint32_t> deaths = {writes / 2, writes - 1};
  if (std::getenv("OJS_SHM_CRASH_SHORT") == nullptr)
    deaths.insert(deaths.end(), {writes / 3, writes * 3 / 4});
  for (const std::uint32_t first : deaths) {
    for (std::uint32_t at = 1; at < 400; at += at < 100 ? 1 : 13) {
      bool dead = false;
      SCOPED_TRACE("killed after write " + std::to_string(first) + ", its repairer after " +
                   std::to_string(at));
      {
        Quiet quiet(where);
        if (first != 0) run_child(operation(), where, first);
        dead = run_repairer(where, at);
        others_work(quiet.segment, 20);
        if (HasFatalFailure()) return;
        examine(GetParam(), quiet.segment);
        if (HasFatalFailure()) return;
      }
      ASSERT_TRUE(remove_segment(where, Removal::kWithJobs).ok());
      if (!dead) break;
      ++kills_of_repairers;
      if (at <= kMostWrites) killed[ledger->points[at - 1]].insert(kRepairer);
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const Operation& operation : all_operations()) list.push_back(operation.name);
  return list;
}
const auto name_of = [](const auto& one) { return one.param; };
INSTANTIATE_TEST_SUITE_P(Each, Operations, testing::ValuesIn(names()), name_of);
INSTANTIATE_TEST_SUITE_P(OfEach, Repairers, testing::ValuesIn(names()), name_of);

/// A process that held jobs dies, then its repairer, then the repairer of both, and so on.
TEST_F(CrashPoints, twenty_repairers_in_a_row_die_in_the_middle) {
  constexpr int kJobs = 60, kRepairers = 20;
  const ScratchDirectory folder;
  const SegmentName where{"crash", folder.path()};
  const Operation hold{
      "hold", [](Hands&) {},
      [](Hands& h) {
        std::vector<Worker> workers;  // some lanes with some jobs each
        for (int i = 0; i < 6; ++i) workers.push_back(Worker::attach(h.segment, {}).value());
        for (int i = 0; i < kJobs; ++i) {
          h.put();
          (void)workers[static_cast<std::size_t>(i) % workers.size()].try_fetch(h.job);
        }
        ::kill(::getpid(), SIGKILL);
      }};
  Quiet quiet(where);
  ASSERT_TRUE(run_child(hold, where, 0));
  for (int i = 0; i < kRepairers; ++i) {
    ASSERT_TRUE(run_repairer(where, 30))
        << "repairer " << i << " had finished after " << ledger->writes << " writes";
    others_work(quiet.segment, 20);
  }
  EXPECT_FALSE(run_repairer(where, 0));
  const Observer observer = Observer::attach(quiet.segment).value();
  EXPECT_EQ(findings(observer), "");
  JobFilter waiting;
  waiting.state = State::kAvailable;
  EXPECT_EQ(observer.list(waiting).size(), std::size_t{kJobs});
  examine(hold.name, quiet.segment);
}

/// Nothing that a repair needs can be used up: neither lanes nor process records.
TEST_F(CrashPoints, every_lane_and_every_record_belongs_to_the_dead) {
  const ScratchDirectory folder;
  const SegmentName where{"crash", folder.path()};
  for (const Operation& operation : operations()) {
    if (operation.name != "ack_result" && operation.name != "enqueue_batch") continue;
    SCOPED_TRACE(operation.name);
    {
      Quiet quiet(where);
      shm::Segment& tables = quiet.segment.attachment()->segment();
      run_child(operation, where, 0);
      ASSERT_TRUE(run_child(operation, where, ledger->writes * 2 / 3));
      const Operation hoard{"hoard", [](Hands&) {},
                            [](Hands& h) {
                              const shm::Segment& all = h.segment.attachment()->segment();
                              for (std::uint32_t l = 0; l < all.geometry().lanes; ++l)
                                if (all.lane(l).process.load() == 0)
                                  (void)h.segment.attachment()->take_lane(true);
                              ::kill(::getpid(), SIGKILL);
                            }};
      ASSERT_TRUE(run_child(hoard, where, 0));
      for (std::uint32_t l = 0; l < tables.geometry().lanes; ++l)
        ASSERT_NE(tables.lane(l).process.load(), 0U);
      for (std::uint32_t i = 0; i < tables.geometry().processes; ++i) {
        if (tables.process(i).live.load() != 0) continue;
        const pid_t child = ::fork();
        if (child == 0) {
          auto* segment = new auto(Segment::attach(where));
          if (segment->ok()) ::kill(::getpid(), SIGKILL);
          ::_exit(1);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status));
      }
      const auto attached = Segment::attach(where);
      ASSERT_TRUE(attached.ok()) << attached.error().message;
      EXPECT_TRUE(Producer::attach(*attached).ok());
      examine(operation.name, quiet.segment);
    }
    ASSERT_TRUE(remove_segment(where, Removal::kWithJobs).ok());
  }
}

Point seat_point = Point::kNone;
void die_at_the_seat(Access access, Point point, const void*) {
  if (access == Access::kWritten && point == seat_point) ::kill(::getpid(), SIGKILL);
}

/// A broker, and a keeper that supervises in its stead, die when they have just taken their seat,
/// and when they leave it.
TEST_F(CrashPoints, FS_T02_whoever_takes_a_seat_or_leaves_it) {
  for (const bool broker : {true, false})
    for (const Point point : {Point::kSeatTaken, Point::kSeatLeft}) {
      SCOPED_TRACE(std::string(broker ? "broker, " : "keeper, ").append(shm::point_name(point)));
      const ScratchDirectory folder;
      const SegmentName where{"seat", folder.path()};
      { const Quiet quiet(where); }
      const pid_t child = ::fork();
      if (child == 0) {
        seat_point = point;
        shm::process_hook = die_at_the_seat;
        if (broker) {
          { const auto seated = Broker::start(where, {}); }
          ::_exit(1);
        }
        {
          const Segment segment = Segment::attach(where).value();
          const Producer producer = Producer::attach(segment).value();
          eventually(
              [&] { return segment.attachment()->segment().header().supervisor.load() != 0; });
        }
        ::_exit(1);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
      killed[static_cast<std::size_t>(point)].insert(
          "`CrashPoints.FS_T02_whoever_takes_a_seat_or_leaves_it`");

      const auto next = Broker::start(where, {});
      ASSERT_TRUE(next.ok()) << next.error().message;
      EXPECT_TRUE(next->resumed());
      EXPECT_NE(next->resume_report().find(" 0 violations left"), std::string::npos)
          << next->resume_report();
      others_work(next->segment(), 10);
    }
}

/// The items of a list in one cell of a table.
std::set<std::string> items(const std::string& cell) {
  std::set<std::string> all;
  std::istringstream list(cell);
  for (std::string item; std::getline(list >> std::ws, item, ',');)
    all.insert(item.substr(0, item.find_last_not_of(' ') + 1));
  return all;
}

/// The table of docs/crash_recovery.md: where each point is said to be killed in.
std::map<std::string, std::set<std::string>> told() {
  std::map<std::string, std::set<std::string>> table;
  std::ifstream page(OJS_SHM_SOURCE_DIR "/docs/crash_recovery.md");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| ") || !line.ends_with(" |") || line.starts_with("| point |")) continue;
    const std::string points = line.substr(2, line.find(" | ") - 2);
    const std::size_t last = line.rfind(" | ") + 3;
    for (const std::string& point : items(points)) {
      EXPECT_FALSE(table.contains(point)) << point << " stands in two rows";
      table[point] = items(line.substr(last, line.size() - 2 - last));
    }
  }
  return table;
}

/// A point that no kill reached is a promise that no process checked.
class EveryPoint : public testing::Environment {
 public:
  void TearDown() override {
    const testing::UnitTest& run = *testing::UnitTest::GetInstance();
    std::cout << kills_of_operations << " kills in " << all_operations().size() << " operations, "
              << kills_of_repairers << " kills of repairers\n";
    if (run.test_to_run_count() < run.total_test_count()) return;
    auto table = told();
    for (std::size_t i = 1; i < killed.size(); ++i) {  // of kNone the table tells nothing
      const std::string point(shm::point_name(static_cast<Point>(i)));
      EXPECT_FALSE(killed[i].empty()) << "no kill hit " << point;
      EXPECT_FALSE(table[point].empty()) << "the table tells nothing of " << point;
      for (const std::string& who : table[point])
        EXPECT_TRUE(killed[i].contains(who)) << point << " was hit by no kill of " << who;
      table.erase(point);
    }
    for (const auto& [point, where] : table)
      ADD_FAILURE() << "the table tells of " << point << ", which is no point";
  }
};
const testing::Environment* const kEveryPoint = testing::AddGlobalTestEnvironment(new EveryPoint);

}  // namespace
}  // namespace ojs_shm::test
