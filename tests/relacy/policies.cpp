// SPDX-License-Identifier: Apache-2.0
// Scenes of limits, rates, tenants, pools, full queues, events, names, settings and unique jobs,
// most of them those of tests/schedules.
#include <memory>

#include "engine/unique/unique.hpp"
#include "tests/relacy/scenes.hpp"
#include "tests/schedules/operations.hpp"

namespace ojs_shm::test {
namespace {

using Cast = std::function<void(Stage&, std::uint32_t)>;
using Before = std::function<void(Stage&)>;
constexpr std::uint32_t kBefore = World::kJanitor;

Cast of(const Part& part) {
  return [part](Stage& stage, std::uint32_t self) { part(stage.world(), self); };
}
Before before(const std::function<void(World&)>& prepare) {
  return [prepare](Stage& stage) { prepare(stage.world()); };
}

const Cast put = of([](World& w, std::uint32_t i) { w.put(i, own(i), 1); });
const Cast put_two =
    of([](World& w, std::uint32_t i) { w.put(i, own(i), 1), w.put(i, own(i) + 1, 3); });
const Cast put_batch = of([](World& w, std::uint32_t i) { w.put_batch(i, own(i), 1); });
const Cast put_large = of([](World& w, std::uint32_t i) { w.put(i, own(i) + 3, 1); });
const Cast take = of([](World& w, std::uint32_t i) { w.take(i), w.finish(i); });
const Cast take_two =
    of([](World& w, std::uint32_t i) { w.take(i), w.finish(i), w.take(i), w.finish(i); });
const Cast take_and_keep = of([](World& w, std::uint32_t i) { w.take(i); });
const Cast give_back = of([](World& w, std::uint32_t i) { w.take(i), w.give_back(i); });
const Cast lie_down = of([](World& w, std::uint32_t i) { w.lie_down(i); });

// ---- limits: one at a time of a key -------------------------------------------------------------

enum class Held { kNone, kOne, kOthersToo };

/// One may be at work: job 0, job 1 and, with `third`, job 2 wait; the first is held by thread 0,
/// or others are in the lot.
Before limited(Held held, bool third = true) {
  return before([held, third](World& w) {
    w.limit(1);
    w.put_limited(kBefore, 0, 1), w.put_limited(kBefore, 1, 1);
    if (third) w.put_limited(kBefore, 2, 2);
    if (held != Held::kNone) w.take(0);
    if (held == Held::kOthersToo) w.take(kBefore), w.forget_empties();
  });
}

std::vector<Scene> scenes_of_limits() {
  const Cast end = of([](World& w, std::uint32_t) { w.finish(0); });
  const Cast put_limited = of([](World& w, std::uint32_t i) { w.put_limited(i, own(i), 0); });
  const Cast cancel = of([](World& w, std::uint32_t i) { w.cancel(i, 1); });
  const Cast raise = of([](World& w, std::uint32_t) { w.limit(2); });
  const Cast set = of([](World& w, std::uint32_t i) { w.limit(2, i); });
  const Cast put_brought = of([](World& w, std::uint32_t i) { w.put_brought(i, own(i), 1); });
  const Cast give_keys_up = of([](World& w, std::uint32_t i) { w.give_keys_up(i); });
  const Before nothing_was = [](Stage&) {};
  const Before two_of_a_key = before([](World& w) {
    w.name_limit();
    w.put_limited(kBefore, 0, 1), w.put_limited(kBefore, 1, 1);
  });
  const Before nobody_needs_the_key = before([](World& w) {
    w.put_brought(kBefore, 0, 1);
    w.take(kBefore), w.finish(kBefore);
  });
  const auto at_rate = [](World::Rate kind, std::uint32_t most) {
    return before([kind, most](World& w) {
      w.rate(kind, most);
      for (const unsigned job : {0U, 1U, 2U}) w.put_limited(kBefore, job, 1);
      w.put(kBefore, 3, 2);
    });
  };
  return {
      {"limited: take | take", limited(Held::kNone), {take, take}, true},
      {"limited: give back | take", limited(Held::kNone), {give_back, take}, true},
      {"limited: end | take the last", limited(Held::kOne, false), {end, take}, true},
      {"limited: end | take, others in the lot", limited(Held::kOthersToo), {end, take}},
      {"limited: end | put into the lot", limited(Held::kOthersToo), {end, put_limited}},
      {"limited: end | cancel in the lot", limited(Held::kOthersToo), {end, cancel}},
      {"limited: end | take | put", limited(Held::kOthersToo), {end, take, put_limited}},
      {"limited: raise | take the last", limited(Held::kOne, false), {raise, take}, true},
      {"limited: raise | put into the lot", limited(Held::kOthersToo), {raise, put_limited}},
      {"limit: set | take", two_of_a_key, {set, take_and_keep}, true},
      {"limit: set | take | take", two_of_a_key, {set, take_and_keep, take_and_keep}, true},
      {"keys: put | give up", nobody_needs_the_key, {put_brought, give_keys_up}, true},
      {"keys: put | give up | take", nobody_needs_the_key, {put_brought, give_keys_up, take}, true},
      {"new keys: put | put", nothing_was, {put_brought, put_brought}},
      {"rate, fixed: take | take", at_rate(World::Rate::kFixed, 1), {take, take}},
      {"rate, sliding: take two | take two",
       at_rate(World::Rate::kSliding, 2),
       {take_two, take_two}},
      {"rate, throttle: give back | take two",
       at_rate(World::Rate::kThrottle, 2),
       {give_back, take_two}},
      {"rate, puts off: take | take | take", at_rate(World::Rate::kPutsOff, 2), {take, take, take}},
  };
}

// ---- tenants ------------------------------------------------------------------------------------

std::vector<Scene> scenes_of_tenants() {
  const Cast put_1 = of([](World& w, std::uint32_t i) { w.put_for(i, own(i), 1, 1); });
  const Cast put_2 = of([](World& w, std::uint32_t i) { w.put_for(i, own(i), 1, 2); });
  const auto next = std::make_shared<unsigned>();
  const Cast put_next = of([next](World& w, std::uint32_t i) { w.put_for(i, own(i), 1, *next); });
  const Cast share = of([](World& w, std::uint32_t i) { w.share(i); });
  const Cast stop = of([](World& w, std::uint32_t i) { w.share(i, false); });
  const Cast bound = of([](World& w, std::uint32_t i) { w.bound_tenants(i, 2); });
  const Before shared = before([](World& w) { test::all_open(w), w.share(kBefore); });
  const Before one_of_one = before([](World& w) { w.share(kBefore), w.put_for(kBefore, 0, 1, 1); });
  const Before three_of_two = before([](World& w) {
    w.share(kBefore);
    for (const unsigned job : {0U, 1U, 2U}) w.put_for(kBefore, job, 1, 1 + job / 2);
  });
  const Before one_each = before([](World& w) {
    for (const unsigned job : {0U, 1U}) w.put_for(kBefore, job, 1, 1 + job);
  });
  const Before one_full =
      before([](World& w) { w.bound_tenants(kBefore, 1), w.put_for(kBefore, 0, 1, 1); });
  const Before no_account_left = before([next](World& w) {
    w.bound_tenants(kBefore, 1);
    w.give_all_accounts();
    w.put_for(kBefore, 0, 1, 1);
    *next = w.next_to(1);
  });
  const Before in_doubt = [one_full](Stage& stage) { one_full(stage), stage.doubt_charges(); };
  const Before unbounded = before([](World& w) {
    for (const unsigned job : {0U, 1U}) w.put_for(kBefore, job, 1, 1);
  });
  return {
      {"flows: put | put", shared, {put_1, put_1}},
      {"flows: put | take two", shared, {put_1, take_two}},
      {"flows: put | take the last", one_of_one, {put_1, take}, true},
      {"flows: take two | take two", three_of_two, {take_two, take_two}},
      {"flows: put | take two | take", three_of_two, {put_2, take_two, take}, true},
      {"flows: begin | put", one_each, {share, put_1}},
      {"flows: end | take two", three_of_two, {stop, take_two}},
      {"tenants: put | take", one_full, {put_1, take}},
      {"tenants: put | put", one_full, {put_2, put_2}},
      {"tenants: put | give back", one_full, {put_1, give_back}},
      {"tenants, counted again: put | put", in_doubt, {put_2, put_2}},
      {"tenants, no account left: put | take", no_account_left, {put_next, take}},
      {"tenants, bounded: put", unbounded, {bound, put_1}},
      {"tenants, bounded: take", unbounded, {bound, take}, true},
  };
}

// ---- pools --------------------------------------------------------------------------------------

std::vector<Scene> scenes_of_pools() {
  const Cast settle = of([](World& w, std::uint32_t i) { w.settle(i); });
  const Cast put_take = of([](World& w, std::uint32_t i) { w.put(i, own(i), 1), w.take(i); });
  const Cast put_give_back =
      of([](World& w, std::uint32_t i) { w.put(i, own(i), 1), w.take(i), w.give_back(i); });
  const Cast limit = [](Stage& stage, std::uint32_t self) { stage.limit_pool(self); };
  const Before busy = before([](World& w) { test::all_open(w), w.serve_a_pool(1); });
  const Before quiet = before(
      [](World& w) { test::all_open(w), w.serve_a_pool(1), w.take(kBefore), w.take(kBefore); });
  const Before waiting = before([](World& w) { test::three_wait(w), w.serve_a_pool(1); });
  const Before joined = [](Stage& stage) { test::three_wait(stage.world()), stage.join_pool(); };
  const Before two_queues = before([](World& w) {
    w.serve_a_pool(2);
    for (unsigned job = 0; job < 6; ++job) w.put(kBefore, job, job % 2 == 0 ? 1 : 3);
  });
  return {
      {"pool, busy: settle | put, take", busy, {settle, put_take}, true},
      {"pool, busy: take | put, take", busy, {take_and_keep, put_take}, true},
      {"pool, quiet: settle | put, take", quiet, {settle, put_take}, true},
      {"pool, quiet: settle | put, give back | take",
       quiet,
       {settle, put_give_back, take_and_keep},
       true},
      {"pool of two: take two | take two", two_queues, {take_two, take_two}},
      {"pool: give back | take two", waiting, {give_back, take_two}},
      {"pool, limited: take", joined, {limit, take_and_keep}, true, true},
  };
}

// ---- full queues --------------------------------------------------------------------------------

void two_wait(World& world) {
  world.put(kBefore, 0, 1);
  world.put(kBefore, 1, 2);
  world.older(1, 1000);  // the worse one goes first when room is made
}

std::vector<Scene> scenes_of_full_queues() {
  const Cast wait = of([](World& w, std::uint32_t i) { w.put_patiently(i, own(i), 1); });
  const Cast wait_and_give_up =
      of([](World& w, std::uint32_t i) { w.put_patiently(i, own(i), 1), w.give_up(i); });
  const Before drops = before([](World& w) { two_wait(w), w.drop_at(2); });
  const Before drops_at_three = before([](World& w) { two_wait(w), w.drop_at(3); });
  const Before blocks = before([](World& w) { two_wait(w), w.block_at(2); });
  const Before one_waits =
      before([](World& w) { two_wait(w), w.block_at(2), w.put_patiently(kBefore, 2, 1); });
  const Cast bound_put = of([](World& w, std::uint32_t i) { w.bound(6), w.put(i, own(i), 1); });
  const Before four_wait = before(test::three_wait);
  const Before in_doubt = [](Stage& stage) {
    test::three_wait(stage.world());
    stage.world().bound(5);
    stage.doubt_charges();
  };
  return {
      {"drops: put | put", drops, {put, put}},
      {"drops: put two | take", drops, {put_two, take}},
      {"drops: batch | take", drops, {put_batch, take}},
      {"drops, room for one: batch | put", drops_at_three, {put_batch, put}},
      {"full: wait | take", blocks, {wait, take}, true, true},
      {"full: wait | wait | take", blocks, {wait, wait, take}, true, true},
      {"full: wait | give up | take", blocks, {wait, wait_and_give_up, take}, true, true},
      {"one waits: put | take", one_waits, {put, take}, true, true},
      {"counted again: put | put", in_doubt, {put, put}},
      {"bound, put | put", four_wait, {bound_put, put}, true, true},
      {"counted again: put | put | take", in_doubt, {put, put, take}},
  };
}

// ---- what is told and noted ---------------------------------------------------------------------

std::vector<Scene> scenes_of_readers() {
  const auto by = [](void (Stage::*act)(std::uint32_t)) {
    return [act](Stage& stage, std::uint32_t self) { (stage.*act)(self); };
  };
  const Cast read_names = [](Stage& stage, std::uint32_t) { stage.read_names(); };
  const Cast repair = [](Stage& stage, std::uint32_t) { stage.repair_nothing(); };
  const Cast supervise = [](Stage& stage, std::uint32_t) { stage.supervise_leases(); };
  const Cast read_window = [](Stage& stage, std::uint32_t) { stage.read_window(); };
  const Cast read_all = [](Stage& stage, std::uint32_t) { stage.read_told(true); };
  const Cast read_what_is_left = [](Stage& stage, std::uint32_t) { stage.read_told(false); };
  const Before nothing_was = [](Stage&) {};
  const Before open = before(test::all_open), waiting = before(test::three_wait);
  const Before one_tells = [](Stage& stage) { stage.put_telling(kBefore, 8); };
  const Before telling = before([](World& w) { test::three_wait(w), w.tell(); });
  const Before paused = [](Stage& stage) { test::three_wait(stage.world()), stage.pause(); };
  return {
      {"told: give back | take", telling, {give_back, take}},
      {"told: put | give back", telling, {put, give_back}},
      {"events: tell | tell | read",
       nothing_was,
       {by(&Stage::tell_two), by(&Stage::tell_two), read_all}},
      {"events: tell | read", nothing_was, {by(&Stage::tell_two), read_all}},
      {"events, all pages used: tell | read",
       [](Stage& stage) { stage.fill_pages(); },
       {by(&Stage::tell_two), read_what_is_left}},
      {"name a queue | read", nothing_was, {by(&Stage::name_queue), read_names}},
      {"name a pool | read", nothing_was, {by(&Stage::name_pool), read_names}},
      {"name a key | read", nothing_was, {by(&Stage::name_key), read_names}},
      {"sample | read",
       [](Stage& stage) { stage.work_a_minute_ago(); },
       {by(&Stage::take_sample), read_window}},
      {"all age | make a queue", nothing_was, {by(&Stage::age_all), by(&Stage::make_queue)}, true},
      {"go on | lie down", paused, {by(&Stage::go_on), lie_down}, true},
      {"take shortly | supervise", one_tells, {by(&Stage::take_shortly), supervise}, true},
      {"repair | put large", open, {repair, put_large}},
      {"repair | give back", waiting, {repair, give_back}},
  };
}

}  // namespace

/// They are longer than the others, and many.
std::vector<Scene> scenes_of_unique_jobs() {
  using engine::OnConflict;
  const Cast bring =
      of([](World& w, std::uint32_t i) { w.put_unique(i, own(i), 1, OnConflict::kReject); });
  const Cast replace =
      of([](World& w, std::uint32_t i) { w.put_unique(i, own(i), 1, OnConflict::kReplace); });
  const Before nothing_was = [](Stage&) {};
  const Before one_is_there =
      before([](World& w) { w.put_unique(kBefore, 0, 1, OnConflict::kReject); });
  return {
      {"unique: put | put", nothing_was, {bring, bring}, true},
      {"unique: put | put | put", nothing_was, {bring, bring, bring}, true},
      {"unique: put | take", one_is_there, {bring, take}, true},
      {"unique: replace | replace", nothing_was, {replace, replace}, true},
      {"unique: replace | take", one_is_there, {replace, take}},
  };
}

std::vector<Scene> scenes_of_policies() {
  std::vector<Scene> all;
  for (const auto& scenes : {scenes_of_limits(), scenes_of_tenants(), scenes_of_pools(),
                             scenes_of_full_queues(), scenes_of_readers(), scenes_of_unique_jobs()})
    all.insert(all.end(), scenes.begin(), scenes.end());
  for (Scene& scene : all) scene.rarer = 2;
  return all;
}

}  // namespace ojs_shm::test
