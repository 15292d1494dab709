// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "engine/crons/crons.hpp"

namespace ojs_shm::internal {

/// When a cron whose time `due` has come fires next: missed times are one. Nothing: the expression
/// or its zone cannot be read here. 0: never again.
std::optional<std::uint64_t> next_time(const engine::CronTexts& texts, std::uint64_t due,
                                       std::uint64_t now);

/// Fires crons, for the process that holds the supervisor's seat. One thread.
class CronKeeper {
 public:
  explicit CronKeeper(engine::Actor& actor) : actor_(actor) {}
  /// Fires what is due. Returns when it wants to be called again, at the latest (Unix ms).
  std::uint64_t look(std::uint64_t now);
  /// Whether a cron was set since the last look.
  bool is_late() const { return actor_.store().cron_table().turn.load_seq_cst() != turn_; }

 private:
  std::uint64_t fire(std::uint32_t at, std::uint64_t now);

  engine::Actor& actor_;
  std::uint64_t turn_ = 0;
};

}  // namespace ojs_shm::internal
