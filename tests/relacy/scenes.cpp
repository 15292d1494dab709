// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "tests/relacy/scenes.hpp"

namespace ojs_shm::test {
namespace {

/// The first job of a thread's own; it has four.
unsigned own(std::uint32_t self) { return 6 + 4 * self; }
constexpr std::uint32_t kBefore = World::kJanitor, kBeforeInLine1 = World::kSecondJanitor;

void nothing_was(Stage&) {}

/// Two jobs of rank 1, one of rank 2 and one of rank 3, whose id was brought, wait; a dead hint
/// stands among them.
void three_wait(Stage& stage) {
  World& world = stage.world();
  world.put(kBefore, 0, 1);
  world.put(kBefore, 5, 1);
  world.put(kBefore, 1, 1);
  world.put(kBefore, 2, 2);
  world.cancel(kBefore, 5);
  world.bring(17);
}

/// Nothing waits, but every level was used and is still open.
void all_open(Stage& stage) {
  World& world = stage.world();
  for (unsigned job = 0; job < 4; ++job) world.put(kBefore, job, static_cast<std::uint8_t>(job));
  for (unsigned job = 0; job < 4; ++job) world.take(kBefore), world.finish(kBefore);
}

/// The next hint needs a new chunk, whose link is the next thing that a look meets.
void at_the_end_of_a_chunk(Stage& stage) {
  stage.push_numbered(kBefore, 2);
  stage.pass_numbered(kBefore, 2);
}

void room_for_one(Stage& stage) {
  three_wait(stage);
  stage.world().bound(5);
}

void ageing(Stage& stage) {
  three_wait(stage);
  stage.world().age();
}

/// Threads 0 and 2 are at home in line 0, thread 1 in line 1; no line was used yet.
void two_lines(Stage& stage) { stage.world().shard(kBefore, 2); }

/// Nothing waits, but levels of both lines were used and are still open.
void lines_open(Stage& stage) {
  two_lines(stage);
  World& world = stage.world();
  for (unsigned job = 0; job < 6; ++job)
    world.put(job < 3 ? kBefore : kBeforeInLine1, job, static_cast<std::uint8_t>(job % 3));
  for (unsigned job = 0; job < 6; ++job) world.take(kBefore), world.finish(kBefore);
}

/// As three_wait, the one of rank 2 in line 1.
void lines_wait(Stage& stage) {
  two_lines(stage);
  World& world = stage.world();
  world.put(kBefore, 0, 1);
  world.put(kBefore, 1, 1);
  world.put(kBeforeInLine1, 2, 2);
}

void two_levels_take_turns(Stage& stage) {
  for (unsigned job = 0; job < 6; ++job) stage.world().put(kBefore, job, job % 2 == 0 ? 1 : 3);
  stage.world().take_turns();
}

/// Every slot but two was used and is finished, so that the next jobs live where others have ended.
void most_slots_used(Stage& stage) {
  for (unsigned number = 0; number < 7; ++number) {
    stage.put_telling(kBefore, number);
    stage.end_telling(kBefore);
  }
}

/// As most_slots_used; the first of them had the id that others bring.
void same_has_ended(Stage& stage) {
  stage.bring_one_that_ends(kBefore);
  for (unsigned number = 0; number < 6; ++number) {
    stage.put_telling(kBefore, number);
    stage.end_telling(kBefore);
  }
}

void one_held(Stage& stage) { stage.hold_one(0); }

void put_two(Stage& stage, std::uint32_t self) {
  stage.world().put(self, own(self), 1);
  stage.world().put(self, own(self) + 1, 1);
}
void put_best_then_worst(Stage& stage, std::uint32_t self) {
  stage.world().put(self, own(self), 0);
  stage.world().put(self, own(self) + 1, 3);
}
void put_four(Stage& stage, std::uint32_t self) {
  for (unsigned job = 0; job < 4; ++job) stage.world().put(self, own(self) + job, 1);
}
void put_one(Stage& stage, std::uint32_t self) { stage.world().put(self, own(self), 1); }
void put_rated(Stage& stage, std::uint32_t self) { stage.world().put_rated(self, own(self), 2); }
void put_batch(Stage& stage, std::uint32_t self) { stage.world().put_batch(self, own(self), 1); }
void put_again(Stage& stage, std::uint32_t self) { stage.world().put_again(self); }
void take(Stage& stage, std::uint32_t self) {
  stage.world().take(self);
  stage.world().finish(self);
}
void take_two(Stage& stage, std::uint32_t self) { take(stage, self), take(stage, self); }
void take_four(Stage& stage, std::uint32_t self) { take_two(stage, self), take_two(stage, self); }
void push_eight(Stage& stage, std::uint32_t self) { stage.push_numbered(self, 8); }
void pass_eight(Stage& stage, std::uint32_t self) { stage.pass_numbered(self, 32); }
void turn_over(Stage& stage, std::uint32_t self) {
  for (unsigned job = 0; job < 4; ++job) {
    if (job < 2) take(stage, self);
    stage.world().put(self, own(self) + job, 1);
  }
}
void give_back(Stage& stage, std::uint32_t self) {
  stage.world().take(self);
  stage.world().give_back(self);
}
void fail(Stage& stage, std::uint32_t self) {
  stage.world().take(self);
  stage.world().fail(self);
}
void cancel(Stage& stage, std::uint32_t self) { stage.world().cancel(self, 0); }
void move_first(Stage& stage, std::uint32_t self) { stage.world().move(self, 0, 0); }
void move_last(Stage& stage, std::uint32_t self) { stage.world().move(self, 0, 3); }
void more_lines(Stage& stage, std::uint32_t self) { stage.world().shard(self, 2); }
void more_lines_put(Stage& stage, std::uint32_t self) {
  more_lines(stage, self), put_one(stage, self);
}
void fewer_lines(Stage& stage, std::uint32_t self) { stage.world().shard(self, 1); }
void close(Stage& stage, std::uint32_t self) { stage.world().close_levels(self); }
void pack(Stage& stage, std::uint32_t self) { stage.world().pack(self); }
void tend(Stage& stage, std::uint32_t self) { stage.world().tend(self); }
void lie_down(Stage& stage, std::uint32_t self) { stage.world().lie_down(self); }
void use_again(Stage& stage, std::uint32_t self) {
  for (unsigned i = 0; i < 3; ++i) stage.put_telling(self, own(self) + i);
}
void live_and_die(Stage& stage, std::uint32_t self) {
  for (unsigned i = 0; i < 3; ++i) {
    stage.put_telling(self, own(self) + i);
    stage.end_telling(self);
  }
}
void look_at_all(Stage& stage, std::uint32_t) {
  stage.look_at_all();
  stage.look_at_all();
}
void bring_the_same(Stage& stage, std::uint32_t self) { stage.bring_the_same(self); }
void extend(Stage& stage, std::uint32_t self) { stage.extend(self); }
void end_overdue(Stage& stage, std::uint32_t self) { stage.end_overdue(self); }
void wait_for_it(Stage& stage, std::uint32_t) { stage.wait_for_it(); }
void end_it(Stage& stage, std::uint32_t self) { stage.end_it(self); }
void put_for_later(Stage& stage, std::uint32_t self) { stage.put_for_later(self); }
void supervise(Stage& stage, std::uint32_t self) { stage.supervise_until_later(self); }

std::vector<Scene> scenes_of_queues() {
  return {
      // rings
      {"new rings: put, put | take, take", nothing_was, {put_best_then_worst, take_two}},
      {"new rings: put | put | take", nothing_was, {put_two, put_two, take_two}},
      {"put four | take four", all_open, {put_four, take_four}},
      {"push eight | pass eight", at_the_end_of_a_chunk, {push_eight, pass_eight}},
      {"best, then worst | take", all_open, {put_best_then_worst, take}},
      {"put, put | put, put | take four", all_open, {put_two, put_two, take_four}},
      {"put, put | take, take | take, take", three_wait, {put_two, take_two, take_two}},
      {"turn over | take, take", three_wait, {turn_over, take_two}},
      {"turn over | put, put", three_wait, {turn_over, put_two}},
      {"turn over | turn over", three_wait, {turn_over, turn_over}},
      {"close | put, put", all_open, {close, put_two}},
      {"close | close | put", all_open, {close, close, put_one}},
      {"close | put, put | take, take", all_open, {close, put_two, take_two}},
      {"batch | take, take", all_open, {put_batch, take_two}},
      {"batch | put, put | take four", all_open, {put_batch, put_two, take_four}},
      // jobs that come back, move or go
      {"give back | take, take", three_wait, {give_back, take_two}},
      {"give back | give back | take", three_wait, {give_back, give_back, take}},
      {"fail | take, take", three_wait, {fail, take_two}},
      {"cancel | take, take", three_wait, {cancel, take_two}},
      {"move first | take, take", three_wait, {move_first, take_two}},
      {"move last | take, take", three_wait, {move_last, take_two}},
      {"move first | move last | take", three_wait, {move_first, move_last, take}},
      {"pack | take, take | put, put", three_wait, {pack, take_two, put_two}, true},
      {"pack | turn over", three_wait, {pack, turn_over}, true},
      {"tend | take, take | put, put", three_wait, {tend, take_two, put_two}},
      // other orders
      {"ageing: put, put | take, take", ageing, {put_two, take_two}},
      {"ageing: move first | take, take", ageing, {move_first, take_two}},
      {"turns: take, take | take, take", two_levels_take_turns, {take_two, take_two}},
      {"put rated | put rated", three_wait, {put_rated, put_rated}},
      {"put rated | put rated | take four", three_wait, {put_rated, put_rated, take_four}},
      {"put rated | lie down", all_open, {put_rated, lie_down}, true},
      // lines
      {"new lines: put | put | take, take", two_lines, {put_one, put_one, take_two}},
      {"lines: put, put | take, take", lines_open, {put_two, take_two}},
      {"lines: take, take | best, then worst", lines_open, {take_two, put_best_then_worst}},
      {"lines: take, take | take, take | put, put", lines_wait, {take_two, take_two, put_two}},
      {"lines: move first | take, take", lines_wait, {move_first, take_two}},
      {"lines: give back | take, take", lines_wait, {give_back, take_two}},
      {"more lines | put, put | take, take", all_open, {more_lines, put_two, take_two}},
      {"fewer lines | put, put | take, take", lines_wait, {fewer_lines, put_two, take_two}},
      {"new lines: put | lie down", two_lines, {put_one, lie_down}, true},
      {"lines: lie down | put", lines_open, {lie_down, put_one}, true},
      {"lines: lie down | batch", lines_open, {lie_down, put_batch}, true},
      {"lie down | more lines, put", all_open, {lie_down, more_lines_put}, true},
      // waiting
      {"put | lie down", all_open, {put_one, lie_down}, true},
      {"new rings: put | lie down", nothing_was, {put_one, lie_down}, true},
      {"put | lie down | lie down", all_open, {put_two, lie_down, lie_down}, true},
      {"batch | lie down", all_open, {put_batch, lie_down}, true},
      {"move first | lie down", three_wait, {move_first, lie_down}, true},
      {"give back | take, take | lie down", three_wait, {give_back, take_two, lie_down}, true},
      {"end | wait", one_held, {end_it, wait_for_it}, true},
      {"put for later | supervise", nothing_was, {put_for_later, supervise}, true},
      // records
      {"live and die | look", most_slots_used, {live_and_die, look_at_all}},
      {"live and die | live and die | look",
       most_slots_used,
       {live_and_die, live_and_die, look_at_all}},
      {"extend | end overdue", one_held, {extend, end_overdue}},
      {"end overdue | end overdue", one_held, {end_overdue, end_overdue}},
      // bounds and keys
      {"room for one: put | put", room_for_one, {put_one, put_one}},
      {"room for one: put | batch | take", room_for_one, {put_one, put_batch, take}},
      {"room for one: put, put | give back", room_for_one, {put_two, give_back}},
      {"bring | bring", nothing_was, {bring_the_same, bring_the_same}, true},
      {"bring | bring | bring",
       nothing_was,
       {bring_the_same, bring_the_same, bring_the_same},
       true},
      {"bring | bring | use again",
       same_has_ended,
       {bring_the_same, bring_the_same, use_again},
       true},
      {"duplicate | take four", three_wait, {put_again, take_four}},
  };
}

}  // namespace

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all = [] {
    std::vector<Scene> made = scenes_of_queues();
    std::ranges::copy(scenes_of_policies(), std::back_inserter(made));
    return made;
  }();
  return all;
}

Play play_of(Stage& stage, const Scene& scene, const Mutant* mutant) {
  const shm::Segment& segment = stage.world().store().segment();
  Play play;
  play.begin = &segment.header();
  play.size = segment.size();
  play.prepare = [&] {
    stage.begin_anew();
    scene.prepare(stage);
  };
  for (std::uint32_t i = 0; i < scene.parts.size(); ++i)
    play.threads.emplace_back([&stage, &scene, i] { scene.parts[i](stage, i); });
  play.verdict = [&] { return stage.verdict(); };
  if (mutant != nullptr || scene.stores_in_total_order)
    play.weaken = [&stage, mutant, total = scene.stores_in_total_order](MemoryAccess access) {
      using Order = std::memory_order;
      const bool store =
          access.kind == MemoryAccess::Kind::kStore && access.point != shm::Point::kNone;
      if (total && store && access.order == Order::release) access.order = Order::seq_cst;
      return mutant == nullptr ? access.order : mutant->order(stage, access);
    };
  play.name_of = [&](const void* word) { return stage.name_of(word); };
  return play;
}

}  // namespace ojs_shm::test
