// SPDX-License-Identifier: Apache-2.0
// Workers of one id that register at once, give signs of life and are ended; jobs on their way to
// clients. One of the lanes is killed.
#include "tests/schedules/operations.hpp"
#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

class WorkerSchedules : public Schedules {};

const std::string kOne(40, 'a'), kOther(24, 'b');

TEST_F(WorkerSchedules, FS_T09_one_id_is_one_worker_whoever_dies) {
  const auto nothing = [](World&) {};
  const auto there = [](World& w) { w.register_worker(World::kJanitor, "w", kOne); };
  const auto silent = [](World& w) {
    w.register_worker(World::kJanitor, "w", kOne);
    w.silence();
    w.may_end_workers();
  };
  const auto gone = [](World& w) {
    w.register_worker(World::kJanitor, "w", kOne);
    w.silence();
    w.may_end_workers();
    w.end_silent_workers(World::kJanitor);
  };
  const auto at_work = [](World& w) {
    w.put(World::kJanitor, 0, 1);
    w.register_worker(World::kJanitor, "w", kOne);
    w.take_as(World::kJanitor, "w");
    w.silence();
    w.may_end_workers();
  };
  const auto enter = [](const std::string& details) -> Part {
    return [&details](World& w, std::uint32_t i) {
      w.register_worker(i, "w", details);
      w.sign_of_life(i, "w");
    };
  };
  const Part one = enter(kOne), other = enter(kOther);
  const Part second = [](World& w, std::uint32_t i) { w.register_worker(i, "v", kOther); };
  const Part sign = [](World& w, std::uint32_t i) { w.sign_of_life(i, "w"); };
  const Part end = [](World& w, std::uint32_t i) { w.end_silent_workers(i); };
  const Part leave = [](World& w, std::uint32_t i) { w.remove_worker(i, "w"); };
  const Part direct = [](World& w, std::uint32_t i) { w.direct_worker(i, "w"); };
  const std::vector<Scenario> scenarios = {
      {"workers: register | register", nothing, {one, other}},
      {"workers: register | register another", nothing, {one, second}},
      {"workers: register | register | register", nothing, {one, other, one}},
      {"workers: change | change", there, {other, other}},
      {"workers: change | leave", there, {other, leave}},
      {"workers: change | direct", there, {other, direct}},
      {"workers: sign | sign", there, {sign, sign}},
      {"workers: sign | end", silent, {sign, end}},
      {"workers: register | end", silent, {other, end}},
      {"workers: end | end", silent, {end, end}},
      {"workers: return jobs | return jobs", at_work, {end, end}},
      {"workers: return jobs | register", at_work, {end, other}},
      {"workers: come back | come back", gone, {one, other}}};
  for (const Scenario& scenario : scenarios)
    for (const unsigned kills : {0U, 1U}) {
      explore(scenario,
              {.preemptions = 2, .kills = kills, .most_runs = long_form() ? 300'000ULL : 800});
      if (HasFailure()) return;
    }
}

TEST_F(WorkerSchedules, PRI_S5_shares_hold_over_all_who_take_turns_at_once) {
  const Part one = [](World& w, std::uint32_t) { w.take_share(); };
  const Part two = [](World& w, std::uint32_t) { w.take_share(), w.take_share(); };
  const Part poor = [](World& w, std::uint32_t) { w.take_share(false), w.take_share(false); };
  const auto nothing = [](World&) {};
  const std::vector<Scenario> scenarios = {{"shares: one | two", nothing, {one, two}},
                                           {"shares: one | one | one", nothing, {one, one, one}},
                                           {"shares: poor | poor", nothing, {poor, poor}}};
  for (const Scenario& scenario : scenarios)
    for (const unsigned kills : {0U, 1U}) {
      explore(scenario,
              {.preemptions = 3, .kills = kills, .most_runs = long_form() ? 300'000ULL : 2000});
      if (HasFailure()) return;
    }
}

TEST_F(WorkerSchedules, FS_T02_a_job_that_reached_no_client_comes_back_uncounted) {
  const Part serve = [](World& w, std::uint32_t i) { w.take_for_client(i), w.hand_over(i); };
  const Part finish = [](World& w, std::uint32_t i) {
    w.take_for_client(i), w.hand_over(i), w.finish(i);
  };
  const Part end_leases = [](World& w, std::uint32_t i) { w.tend(i); };
  const Part cancel = [](World& w, std::uint32_t i) { w.cancel(i, 0); };
  const std::vector<Scenario> scenarios = {
      {"clients: serve | serve", three_wait, {serve, serve}},
      {"clients: serve and finish | serve", three_wait, {finish, serve}},
      {"clients: serve | leases end", three_wait, {serve, end_leases}},
      {"clients: serve | cancel", three_wait, {serve, cancel}}};
  for (const Scenario& scenario : scenarios)
    for (const unsigned kills : {0U, 1U}) {
      explore(scenario,
              {.preemptions = 2, .kills = kills, .most_runs = long_form() ? 300'000ULL : 800});
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace ojs_shm::test
