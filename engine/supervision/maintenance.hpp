// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/actor.hpp"
#include "engine/supervision/maintenance_record.hpp"

namespace ojs_shm::engine {

struct MaintenanceView {
  bool on = false;
  std::string reason;
  std::uint64_t since_ms = 0;  ///< when that was said
  std::uint64_t end_ms = 0;    ///< when it is meant to end; 0: nothing was said
};
MaintenanceView look_at_maintenance(const Store& store);

/// Sets the maintenance of all queues, now and later; one lane at a time.
class Maintenance {
 public:
  explicit Maintenance(Actor& actor) : actor_(actor), store_(actor.store()) {}

  /// `end_ms` is told and does nothing. kBusy: a lane is stopped in the middle of it.
  Outcome define(bool on, std::string_view reason, std::uint64_t end_ms);
  /// After a death: ends the change that the dead lane was at, if it was.
  void end_change();

 private:
  void follow();
  Seat<Word> seat() const { return settler(store_.header().maintainer, actor_.lane()); }

  Actor& actor_;
  Store& store_;
};

}  // namespace ojs_shm::engine
