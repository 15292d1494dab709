// SPDX-License-Identifier: Apache-2.0
// The join of a workflow: two jobs end at once, and one waits for both, in every order of their
// shared accesses, one of the processes killed, and its repairer.
#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

/// Jobs 0 and 1 are in the hands of the first two fibers.
void both_held(World& w) {
  w.make_workflow(World::kJanitor);
  w.take(0), w.take(1);
}
void none_held(World& w) { w.make_workflow(World::kJanitor); }

const Part kFinish = [](World& w, std::uint32_t i) { w.finish(i); };
const Part kFail = [](World& w, std::uint32_t i) { w.fail(i); };
const Part kTake = [](World& w, std::uint32_t i) { w.take(i), w.finish(i); };
const Part kCreate = [](World& w, std::uint32_t i) { w.make_workflow(i); };
const Part kCancel = [](World& w, std::uint32_t i) { w.cancel_workflow(i); };
const Part kCancelOne = [](World& w, std::uint32_t i) { w.cancel(i, 0); };

class WorkflowSchedules : public Schedules {
 protected:
  void explore_all(const std::vector<Scenario>& scenarios) {
    Schedules::explore_all(scenarios, 2'000, 400'000);
  }
};

TEST_F(WorkflowSchedules, of_two_that_end_at_once_one_lets_the_job_after_both_run) {
  explore_all({{"workflow: finish | finish", both_held, {kFinish, kFinish}},
               {"workflow: finish | finish | take", both_held, {kFinish, kFinish, kTake}},
               {"workflow: finish | fail", both_held, {kFinish, kFail}},
               {"workflow: fail | fail", both_held, {kFail, kFail}}});
}

TEST_F(WorkflowSchedules, it_is_created_beside_those_who_take_its_jobs) {
  const auto nothing = [](World&) {};
  // alone, so that each of its writes comes about within a few runs
  explore({"workflow: create", nothing, {kCreate}}, {.preemptions = 0, .kills = 1});
  explore_all({{"workflow: create | take", nothing, {kCreate, kTake}},
               {"workflow: create | take | take", nothing, {kCreate, kTake, kTake}}});
}

TEST_F(WorkflowSchedules, it_is_cancelled_beside_those_who_work) {
  explore_all({{"workflow: finish | finish | cancel", both_held, {kFinish, kFinish, kCancel}},
               {"workflow: take | cancel", none_held, {kTake, kCancel}},
               {"workflow: cancel a job | take", none_held, {kCancelOne, kTake}}});
}

/// One died after any of its writes; the repairer is killed as well, while the other one ends.
TEST_F(WorkflowSchedules, a_repairer_beside_the_other_who_ends) {
  const auto held = [](World& w) {
    w.make_workflow(World::kJanitor);
    w.take(2), w.take(1);
  };
  const std::vector<std::uint32_t> deaths = deaths_of(world(), held, kFinish);
  for (std::size_t i = 0; i < deaths.size(); i += long_form() ? 1 : 3) {
    const auto died = [&held, access = deaths[i]](World& w) {
      held(w);
      kill_alone(w, 2, kFinish, access);
    };
    explore({"workflow: died before access " + std::to_string(deaths[i]) + ": repair | finish",
             died,
             {[](World& w, std::uint32_t) { w.repair(); }, kFinish}},
            {.preemptions = 1, .kills = 1, .most_runs = long_form() ? 20'000ULL : 200});
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ojs_shm::test
