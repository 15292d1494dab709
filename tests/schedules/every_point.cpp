// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "shm/points.hpp"
#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

using shm::Point;

/// A shared write after which no fiber was ever killed belongs to an operation that no lane has
/// registered here.
class EveryPoint : public testing::Environment {
 public:
  void TearDown() override {
    const testing::UnitTest& run = *testing::UnitTest::GetInstance();
    if (run.test_to_run_count() < run.total_test_count() ||
        std::getenv("OJS_SHM_SCHEDULES_ONLY") != nullptr)
      return;
    const std::set<Point> elsewhere = {
        Point::kNone, Point::kMoveHelped,  // a helper writes what its principal writes
        // Of a process that comes or goes, and of one that sleeps in the kernel: tests/crash,
        // tests/relacy.
        Point::kProcessLive, Point::kProcessFreed, Point::kLaneTaken, Point::kLaneFreed,
        Point::kSeatTaken, Point::kSeatLeft, Point::kWaiterSet, Point::kWaiterCleared,
        Point::kDoorbellRung, Point::kWaitFlagSet, Point::kCompletionRung,
        // Of crons: tests/crash, and here when there is time for all schedules.
        Point::kCronSeatTaken, Point::kCronStaged, Point::kCronCommitted, Point::kCronChanged,
        Point::kCronTemplateKept, Point::kCronTurned,
        // Of settings of the whole segment, by one lane that holds a seat: tests/crash.
        Point::kMaintenanceSet,
        // What guides a choice and decides nothing.
        Point::kBacklogCounted, Point::kSampleTaken};
    for (std::size_t i = 0; i < static_cast<std::size_t>(Point::kCount); ++i) {
      const auto point = static_cast<Point>(i);
      if (elsewhere.contains(point)) continue;
      EXPECT_GT(Fibers::deaths_at(point), 0U)
          << "no schedule killed a fiber at " << shm::point_name(point);
    }
  }
};

const testing::Environment* const kEveryPoint = testing::AddGlobalTestEnvironment(new EveryPoint);

}  // namespace
}  // namespace ojs_shm::test
