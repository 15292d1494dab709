// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

/// The world of tests/schedules, without one clock for all, and what some scenes note beside it.
class Stage {
 public:
  Stage();
  World& world() { return world_; }
  void begin_anew();
  std::string verdict();

  // A lease that ends while its holder extends it.
  void hold_one(std::uint32_t self);
  void extend(std::uint32_t self);
  void end_overdue(std::uint32_t self);
  // Its end, and somebody who waits for it, as Producer::wait does before it sleeps.
  void wait_for_it();
  void end_it(std::uint32_t self);
  // Jobs that tell by themselves whether their fields belong together.
  void put_telling(std::uint32_t self, unsigned number);
  void end_telling(std::uint32_t self);
  void look_at_all();
  // The same id, brought by several.
  void bring_the_same(std::uint32_t self);
  // A ring by itself, that of those who wait for room: hints that are numbered, and who passes them.
  void push_numbered(std::uint32_t self, unsigned hints);
  void pass_numbered(std::uint32_t self, unsigned looks);
  // A job for later, and the supervisor, as Attachment does before it sleeps.
  void put_for_later(std::uint32_t self);
  void supervise_until_later(std::uint32_t self);

  /// What the word is: for the history of a failure, and for mutants.
  std::string_view name_of(const void* word) const;

 private:
  World world_;
  std::string wrong_;
  engine::Fetched held_, telling_[2];
  std::string body_, bodies_[2];
  bool extended_ = false, ended_ = false, waits_ = false, supervisor_sleeps_ = false;
  std::uint32_t overdue_ended_ = 0, rung_ = 0, accepted_ = 0, brought_ = 0;
  std::uint32_t pushed_ = 0, passed_ = 0;
};

}  // namespace ojs_shm::test
