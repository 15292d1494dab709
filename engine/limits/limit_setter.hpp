// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/actor.hpp"
#include "engine/limits/limits.hpp"

namespace ojs_shm::engine {

/// Makes, sets and gives up keys, one lane at a time; the repair of a lane that dies there ends its
/// change.
class LimitSetter {
 public:
  explicit LimitSetter(Actor& actor) : actor_(actor), store_(actor.store()) {}

  /// `ends_at_s`: when the supervisor takes it back, as clear() does; Unix s, 0: never.
  Outcome define(std::string_view name, const LimitSettings& settings, std::uint32_t ends_at_s = 0);
  Outcome clear(std::string_view name);
  /// Of a job that brings its limit.
  Outcome bring(std::string_view name, const LimitSettings& settings, std::uint32_t& key);
  /// Called by the supervisor: takes back what has ended. When the next one ends, Unix ms; 0: none
  /// does.
  std::uint64_t end_overrides(std::uint64_t now);
  /// What workers of the pool have in hand when it gets a limit. False when another lane is setting
  /// limits.
  bool count_at_work(std::uint32_t pool);
  /// After a death while a limit was set: it stands as far as it was set, and counts what is at
  /// work.
  void end_change();

  // ---- giving keys up (limit_sweep.cpp)
  bool begin();
  void end();
  std::uint32_t sweep(std::uint32_t keep);

 private:
  std::uint32_t name_key(std::string_view name);
  std::uint32_t place_for(std::uint64_t hash) const;
  Outcome write(std::uint32_t at, const LimitSettings& settings, bool by_operator, bool fresh,
                std::uint32_t ends_at_s = 0);
  Outcome try_to_write(std::uint32_t at, const LimitSettings& settings, bool by_operator,
                       bool fresh, std::uint32_t ends_at_s);
  void announce_end(std::uint32_t ends_at_s);
  void let_begin(std::uint32_t at, std::string_view name);
  bool adopt(std::uint32_t at);
  bool at_work_for(std::uint32_t pool, const JobRecord& job) const;
  void follow(std::string_view name, std::uint32_t at);
  bool others_are_through() const;
  std::vector<bool> named_keys(bool lost) const;
  std::uint32_t give_up(const std::vector<bool>& named, std::uint32_t keep);
  bool is_idle(std::uint32_t at, std::uint64_t now) const;
  void clean(std::uint32_t at);
  void forget_gone();
  void end_sweep();
  Seat<Word> seat() const { return settler(store_.header().limit_settler, actor_.lane()); }

  Actor& actor_;
  Store& store_;
};

}  // namespace ojs_shm::engine
