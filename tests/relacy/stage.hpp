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
  // Its end, and a lane that waits for it, as Producer::wait does before it sleeps.
  void wait_for_it();
  void end_it(std::uint32_t self);
  // Jobs that tell by themselves whether their fields belong together.
  void put_telling(std::uint32_t self, unsigned number);
  void end_telling(std::uint32_t self);
  void look_at_all();
  // The same id, brought by several.
  void bring_the_same(std::uint32_t self);
  void bring_one_that_ends(std::uint32_t self);
  // A ring by itself, that of those who wait for room: hints that are numbered, and who passes
  // them.
  void push_numbered(std::uint32_t self, unsigned hints);
  void pass_numbered(std::uint32_t self, unsigned looks);
  // A job for later, and the supervisor, as Attachment does before it sleeps.
  void put_for_later(std::uint32_t self);
  void supervise_until_later(std::uint32_t self);

  // Names and settings, and who reads them (settings.cpp).
  void name_queue(std::uint32_t self);
  void name_pool(std::uint32_t self);
  void name_key(std::uint32_t self);
  void read_names();
  void pause();
  void go_on(std::uint32_t self);
  void age_all(std::uint32_t self);
  void make_queue(std::uint32_t self);
  void take_shortly(std::uint32_t self);
  void supervise_leases();
  void join_pool();
  /// One job of the pool at a time: a lane that has one when that is set counts too.
  void limit_pool(std::uint32_t self);
  /// From here on what is charged has to be counted again, as after a death.
  void doubt_charges();
  /// As after the death of a lane that had nothing in hand.
  void repair_nothing();
  // What was handed out, noted by the second, and who reads of the last minute.
  void work_a_minute_ago();
  void take_sample(std::uint32_t self);
  void read_window();
  // Events that tell by themselves whether their words belong together.
  void fill_pages();
  void tell_two(std::uint32_t self);
  void read_told(bool all_are_there);

  /// What the word is: for the history of a failure, and for mutants.
  std::string_view name_of(const void* word) const;

 private:
  std::string settings_text();

  World world_;
  std::string wrong_;
  engine::Fetched held_, telling_[2];
  std::string body_, bodies_[2];
  bool extended_ = false, ended_ = false, waits_ = false, supervisor_sleeps_ = false;
  std::uint32_t overdue_ended_ = 0, rung_ = 0, accepted_ = 0, brought_ = 0;
  std::uint32_t pushed_ = 0, passed_ = 0;
  bool pool_limited_ = false, all_age_ = false, oversleeps_ = false, one_has_ended_ = false;
};

}  // namespace ojs_shm::test
