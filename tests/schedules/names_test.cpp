// SPDX-License-Identifier: Apache-2.0
// Names that no lane has used yet, of queues, types, tenants and pools, used by two or three at
// once, one of them killed.
#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

class NameSchedules : public Schedules {
 protected:
  void explore_all(const std::vector<Scenario>& scenarios) {
    Schedules::explore_all(scenarios, 800, 700'000);
  }
};

const auto kNothing = [](World&) {};

TEST_F(NameSchedules, FS_T01_FS_T02_a_queue_comes_into_being_once_with_the_jobs_of_all) {
  const Part put_r = [](World& w, std::uint32_t i) { w.put_into(i, own(i), "r"); };
  const Part put_s = [](World& w, std::uint32_t i) { w.put_into(i, own(i), "s"); };
  const Part put_both = [](World& w, std::uint32_t i) {
    w.put_into(i, own(i), "s"), w.put_into(i, own(i) + 1, "r");
  };
  const Part take_r = [](World& w, std::uint32_t i) { w.take_from(i, "r"); };
  const Part age = [](World& w, std::uint32_t i) { w.age_by_default(i); };
  explore_all({{"names: put | put, one queue", kNothing, {put_r, put_r}},
               {"names: put | put, two queues", kNothing, {put_r, put_s}},
               {"names: put, put | put, in turn", kNothing, {put_both, put_r}},
               {"names: put | take", kNothing, {put_r, take_r}},
               {"names: put | the default of ageing", kNothing, {put_r, age}},
               {"names: put | put | put, two queues", kNothing, {put_r, put_s, put_r}},
               {"names: put | put | take", kNothing, {put_r, put_r, take_r}}});
}

TEST_F(NameSchedules, settings_of_new_types_tenants_and_pools_are_kept_apart) {
  const auto type = [](const char* name, std::uint8_t rank) {
    return [name, rank](World& w, std::uint32_t i) {
      w.rank_type(i, name, rank), w.rank_type(i, "c", rank);
    };
  };
  const auto tenant = [](const char* name, std::uint32_t weight) {
    return [name, weight](World& w, std::uint32_t i) { w.weigh_tenant(i, name, weight); };
  };
  const auto pool = [](const char* name) {
    return [name](World& w, std::uint32_t i) { w.set_pool(i, name); };
  };
  explore_all(
      {{"types: one", kNothing, {type("a", 1), type("a", 2)}},
       {"types: two", kNothing, {type("a", 1), type("b", 2)}},
       {"types: two, one twice", kNothing, {type("a", 1), type("b", 2), type("a", 3)}},
       {"tenants: one", kNothing, {tenant("a", 2), tenant("a", 3)}},
       {"tenants: two", kNothing, {tenant("a", 2), tenant("b", 3)}},
       {"tenants: two, one twice", kNothing, {tenant("a", 2), tenant("b", 3), tenant("a", 4)}},
       {"pools: one", kNothing, {pool("a"), pool("a")}},
       {"pools: two", kNothing, {pool("a"), pool("b")}},
       {"pools: one | take", three_wait, {pool("a"), named("take_finish").part}}});
}

}  // namespace
}  // namespace ojs_shm::test
