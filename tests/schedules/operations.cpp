// SPDX-License-Identifier: Apache-2.0
#include "tests/schedules/operations.hpp"

#include <stdexcept>

namespace ojs_shm::test {

void three_wait(World& world) {
  world.put(World::kJanitor, 0, 1);
  world.put(World::kJanitor, 5, 1);
  world.put(World::kJanitor, 1, 1);
  world.put(World::kJanitor, 2, 2);
  world.cancel(World::kJanitor, 5);
  world.bring(17);
}

void all_open(World& world) {
  for (unsigned job = 0; job < 4; ++job)
    world.put(World::kJanitor, job, static_cast<std::uint8_t>(job));
  for (unsigned job = 0; job < 4; ++job) world.take(World::kJanitor), world.finish(World::kJanitor);
}

void all_at_the_end_of_a_chunk(World& world) {
  for (unsigned job = 0; job < 6; ++job)
    world.put(World::kJanitor, job, static_cast<std::uint8_t>(job / 2));
  for (unsigned job = 0; job < 6; ++job) world.take(World::kJanitor), world.finish(World::kJanitor);
}

const std::vector<Named>& operations() {
  static const std::vector<Named> all = {
      {"put_first", [](World& w, std::uint32_t i) { w.put(i, own(i), 0); }},
      {"put_beside", [](World& w, std::uint32_t i) { w.put(i, own(i), 1); }},
      {"put_batch", [](World& w, std::uint32_t i) { w.put_batch(i, own(i), 1); }},
      {"put_large", [](World& w, std::uint32_t i) { w.put(i, own(i) + 3, 2); }},
      {"bring_beside", [](World& w, std::uint32_t i) { w.bring_beside(i, own(i) + 2); }},
      {"put_again", [](World& w, std::uint32_t i) { w.put_again(i); }},
      {"take", [](World& w, std::uint32_t i) { w.take(i); }},
      {"take_finish", [](World& w, std::uint32_t i) { w.take(i), w.finish(i); }},
      {"take_finish_twice", [](World& w, std::uint32_t i) { w.take_finish_twice(i); }},
      {"take_give_back", [](World& w, std::uint32_t i) { w.take(i), w.give_back(i); }},
      {"take_fail", [](World& w, std::uint32_t i) { w.take(i), w.fail(i); }},
      {"take_beat", [](World& w, std::uint32_t i) { w.take(i), w.beat(i); }},
      {"cancel_0", [](World& w, std::uint32_t i) { w.cancel(i, 0); }},
      {"move_0_first", [](World& w, std::uint32_t i) { w.move(i, 0, 0); }},
      {"move_0_last", [](World& w, std::uint32_t i) { w.move(i, 0, 3); }},
      {"close", [](World& w, std::uint32_t i) { w.close_levels(i); }},
      {"pack", [](World& w, std::uint32_t i) { w.pack(i); }},
      {"tend", [](World& w, std::uint32_t i) { w.tend(i); }},
  };
  return all;
}

const Named& named(std::string_view name) {
  for (const Named& operation : operations())
    if (operation.name == name) return operation;
  throw std::invalid_argument("no operation " + std::string(name));
}

Scenario scenario_of(std::initializer_list<const Named*> parts) {
  Scenario scenario;
  scenario.prepare = three_wait;
  for (const Named* part : parts) {
    scenario.name += (scenario.name.empty() ? "" : " | ") + std::string(part->name);
    scenario.parts.push_back(part->part);
  }
  return scenario;
}

}  // namespace ojs_shm::test
