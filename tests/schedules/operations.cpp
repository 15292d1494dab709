// SPDX-License-Identifier: Apache-2.0
#include "tests/schedules/operations.hpp"

#include <stdexcept>

#include "tests/catalogue/basic_operations.hpp"

namespace ojs_shm::test {

namespace {

class FiberCaller final : public Caller {
 public:
  FiberCaller(World& world, std::uint32_t self) : world_(world), self_(self) {}

  unsigned own(unsigned number) const override { return test::own(self_) + number; }
  void put(unsigned job, std::uint8_t rank) override { world_.put(self_, job, rank); }
  void put_batch(unsigned first, std::uint8_t rank) override {
    world_.put_batch(self_, first, rank);
  }
  void bring(unsigned job) override { world_.bring(job); }
  void put_again() override { world_.put_again(self_); }
  void bring_beside(unsigned job) override { world_.bring_beside(self_, job); }
  void take() override { world_.take(self_); }
  void finish() override { world_.finish(self_); }
  void take_finish_twice() override { world_.take_finish_twice(self_); }
  void give_back() override { world_.give_back(self_); }
  void leave() override { world_.leave(self_); }
  void fail() override { world_.fail(self_); }
  void beat() override { world_.beat(self_); }
  void cancel(unsigned job) override { world_.cancel(self_, job); }
  void move(unsigned job, std::uint8_t rank) override { world_.move(self_, job, rank); }
  void close_levels() override { world_.close_levels(self_); }
  void pack() override { world_.pack(self_); }
  void tend() override { world_.tend(self_); }

 private:
  World& world_;
  std::uint32_t self_;
};

}  // namespace

void three_wait(World& world) {
  FiberCaller janitor(world, World::kJanitor);
  let_three_wait(janitor);
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
  static const std::vector<Named> all = [] {
    std::vector<Named> made;
    for (const BasicOperation& basic : basic_operations())
      made.push_back({basic.name, [&basic](World& world, std::uint32_t self) {
                        FiberCaller caller(world, self);
                        basic.act(caller);
                      }});
    return made;
  }();
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
