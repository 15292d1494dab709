// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <string_view>

#include "tools/gateway/serving/hall.hpp"
#include "tools/gateway/serving/shift.hpp"
#include "tools/gateway/serving/visit.hpp"
#include "tools/gateway/streams/tape.hpp"

namespace ojs_shm::gateway {

/// A listener of the tape; gives its place up at the end.
class Listener {
 public:
  /// How many events it reads at once at most.
  static constexpr std::size_t kPiece = 256;

  Listener(Hall& hall, Visit& visit, std::string_view after)
      : tape_(hall.tape()), list_(visit.shift().listeners()) {
    at_ = tape_.join(after, gap_);
    place_ = list_.insert(list_.end(), &visit);
    hall.listeners_came();
  }
  ~Listener() {
    list_.erase(place_);
    tape_.leave();
  }
  Listener(const Listener&) = delete;
  const Tape::Gap& first_gap() const { return gap_; }
  void begin_again(std::string_view after) {
    at_ = tape_.join(after, gap_);
    tape_.leave();
  }
  auto read(Tape::Gap& gap) { return tape_.read(at_, kPiece, gap); }

 private:
  Tape& tape_;
  Tape::Place at_;
  std::list<Visit*>& list_;
  std::list<Visit*>::iterator place_;
  Tape::Gap gap_;
};

}  // namespace ojs_shm::gateway
