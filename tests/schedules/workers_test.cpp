// SPDX-License-Identifier: Apache-2.0
// Workers of one id that register at once, give signs of life and are ended, one of the lanes killed.
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

}  // namespace
}  // namespace ojs_shm::test
