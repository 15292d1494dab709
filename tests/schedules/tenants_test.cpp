// SPDX-License-Identifier: Apache-2.0
// Tenants that share a queue: flows and tenants come into their lines and leave them, in every
// order of their shared accesses, one of them killed.
#include <algorithm>

#include "tests/schedules/schedules.hpp"

namespace ojs_shm::test {
namespace {

/// Two tenants, each with a level of its own: tenants come into the line of the queue and leave it.
TEST_F(Schedules, SUM_11_a_tenant_of_a_queue_comes_and_goes_and_hides_no_job) {
  const auto shared = [](World& world) {
    all_open(world);
    world.share(World::kJanitor, true, 1, true);
  };
  const auto three_of_two = [](World& world) {
    world.share(World::kJanitor, true, 1, true);
    for (const unsigned job : {0U, 1U, 2U})
      world.put_for(World::kJanitor, job, static_cast<std::uint8_t>(1 + job), 1 + job / 2);
  };
  const auto one_of_one = [](World& world) {
    world.share(World::kJanitor, true, 1, true);
    world.put_for(World::kJanitor, 0, 1, 1);
  };
  const auto one_each = [](World& world) {
    for (const unsigned job : {0U, 1U})
      world.put_for(World::kJanitor, job, static_cast<std::uint8_t>(1 + job), 1 + job);
  };
  const Part put = [](World& w, std::uint32_t i) { w.put_for(i, own(i), 3, 1); };
  const Part share = [](World& w, std::uint32_t i) { w.share(i, true, 1, true); };
  const Part within = [](World& w, std::uint32_t i) { w.share(i); };
  const Part stop = [](World& w, std::uint32_t i) { w.share(i, false); };
  const Part take = named("take_finish").part;
  const Part take_two = [](World& w, std::uint32_t i) {
    w.take(i), w.finish(i), w.take(i), w.finish(i);
  };
  for (const unsigned kills : {0U, 1U}) {
    const Limits limits{
        .preemptions = 3 - kills, .kills = kills, .most_runs = long_form() ? 700'000ULL : 1'000};
    Limits further = limits;  // a flow that two take for different tenants comes late
    further.most_runs = std::max<std::uint64_t>(further.most_runs, 20'000);
    explore({"tenants: put | put", shared, {put, put}}, limits);
    explore({"tenants: put | take two", shared, {put, take_two}}, limits);
    explore({"tenants: put | take the last", one_of_one, {put, take}}, limits);
    explore({"tenants: take two | take two", three_of_two, {take_two, take_two}}, limits);
    explore({"tenants: put | take two, of two", three_of_two, {put, take_two}}, limits);
    explore({"tenants: begin | put", one_each, {share, put}}, further);
    explore({"tenants: begin | take two", one_each, {share, take_two}}, limits);
    explore({"tenants: within | take two", three_of_two, {within, take_two}}, limits);
    explore({"tenants: end | put", three_of_two, {stop, put}}, limits);
    for (const char* beside : {"cancel_0", "move_0_first", "take_give_back", "close"})
      explore({std::string("tenants: take two | ") + beside,
               three_of_two,
               {take_two, named(beside).part}},
              limits);
    if (HasFailure()) return;
  }
}

/// A flow comes into line with its first job and leaves it with its last, beside whatever others
/// do; no job is out of sight.
TEST_F(Schedules, FS_T16_a_flow_comes_and_goes_and_hides_no_job) {
  const auto shared = [](World& world) {
    all_open(world);
    world.share(World::kJanitor);
  };
  const auto three_of_two = [](World& world) {
    world.share(World::kJanitor);
    for (const unsigned job : {0U, 1U, 2U}) world.put_for(World::kJanitor, job, 1, 1 + job / 2);
  };
  const auto one_of_one = [](World& world) {
    world.share(World::kJanitor);
    world.put_for(World::kJanitor, 0, 1, 1);
  };
  const auto one_each = [](World& world) {
    for (const unsigned job : {0U, 1U}) world.put_for(World::kJanitor, job, 1, 1 + job);
  };
  const Part put = [](World& w, std::uint32_t i) { w.put_for(i, own(i), 1, 1); };
  const Part put_first_last = [](World& w, std::uint32_t i) {
    w.put_for(i, own(i), 0, 1), w.put_for(i, own(i) + 1, 3, 1);
  };
  const Part share = [](World& w, std::uint32_t i) { w.share(i); };
  const Part stop = [](World& w, std::uint32_t i) { w.share(i, false); };
  const Part take = named("take_finish").part;
  const Part take_two = [](World& w, std::uint32_t i) {
    w.take(i), w.finish(i), w.take(i), w.finish(i);
  };
  for (const unsigned kills : {0U, 1U}) {
    const Limits limits{
        .preemptions = 3 - kills, .kills = kills, .most_runs = long_form() ? 700'000ULL : 1'000};
    Limits further = limits;  // what an end that is not announced does comes late
    further.most_runs = std::max<std::uint64_t>(further.most_runs, 20'000);
    explore({"flows: put | put", shared, {put, put}}, limits);
    explore({"flows: put | take two", shared, {put, take_two}}, limits);
    explore({"flows: put | take the last", one_of_one, {put, take}}, limits);
    explore({"flows: put first, last | take", shared, {put_first_last, take}}, limits);
    explore({"flows: take two | take two", three_of_two, {take_two, take_two}}, limits);
    explore({"flows: put | take two, of two", three_of_two, {put, take_two}}, limits);
    explore({"flows: begin | put", one_each, {share, put}}, limits);
    explore({"flows: begin | take two", one_each, {share, take_two}}, limits);
    explore({"flows: end | put", three_of_two, {stop, put}}, further);
    explore({"flows: end | take two", three_of_two, {stop, take_two}}, limits);
    if (HasFailure()) return;
    for (const char* beside : {"cancel_0", "move_0_first", "take_give_back", "close"}) {
      explore({std::string("flows: take two | ") + beside,
               three_of_two,
               {take_two, named(beside).part}},
              limits);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace ojs_shm::test
