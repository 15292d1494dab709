// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/actor.hpp"
#include "engine/limits.hpp"

namespace ojs_shm::engine {

/// Makes, sets and gives up keys, one lane at a time; who dies there is relieved by its repair.
struct LimitSetter {
  Actor& actor;
  Store& store;

  bool begin();
  void end();
  // limits.cpp
  std::uint32_t name_key(std::string_view name);
  Outcome write(std::uint32_t at, const LimitSettings& settings, bool by_operator, bool fresh);
  bool adopt(std::uint32_t at);
  bool count_at_work(std::uint32_t pool);
  void follow(std::string_view name, std::uint32_t at);
  // limit_sweep.cpp
  std::uint32_t sweep(std::uint32_t keep);
  void clean(std::uint32_t at);
  void end_sweep();

 private:
  std::uint32_t place_for(std::uint64_t hash) const;
  Outcome try_to_write(std::uint32_t at, const LimitSettings& settings, bool by_operator,
                       bool fresh);
  bool others_are_through() const;
  std::vector<bool> named_keys() const;
  bool at_work_for(std::uint32_t pool, const JobRecord& job) const;
  bool is_idle(std::uint32_t at, std::uint64_t now) const;
  void forget_gone();
};

}  // namespace ojs_shm::engine
