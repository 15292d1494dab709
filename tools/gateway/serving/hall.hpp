// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <ojs_shm/census.hpp>
#include <ojs_shm/segment.hpp>

#include "tools/gateway/intake/schema_book.hpp"
#include "tools/gateway/options.hpp"
#include "tools/gateway/serving/tokens.hpp"
#include "tools/gateway/stats/bulk_meter.hpp"
#include "tools/gateway/stats/shared_look.hpp"
#include "tools/gateway/stats/stats_log.hpp"
#include "tools/gateway/streams/notes.hpp"
#include "tools/gateway/streams/stream_count.hpp"
#include "tools/gateway/streams/tape.hpp"

namespace ojs_shm::gateway {

/// What all threads of the gateway share. Thread-safe.
class Hall {
 public:
  Hall(Options options, Segment segment)
      : options_(std::move(options)),
        segment_(std::move(segment)),
        tape_(segment_, notes_),
        streams_(options_.max_streams) {}

  const Options& options() const { return options_; }
  const Segment& segment() const { return segment_; }
  Notes& notes() { return notes_; }
  Tokens& tokens() { return tokens_; }
  Tape& tape() { return tape_; }
  StreamCount& streams() { return streams_; }
  SchemaBook& schemas() { return schemas_; }
  StatsLog& stats() { return stats_; }
  BulkMeter& bulk_meter() { return bulk_meter_; }
  /// The census that all requests within SharedLook::kFresh share.
  std::shared_ptr<const Census> census(const Observer& observer) {
    return census_.get(SharedLook<Census>::Clock::now(), [&] { return observer.census(); });
  }

  /// Told after an enqueue: fetches that wait look again. Set before the first request.
  std::function<void()> jobs_came = [] {};
  /// Told when the first listener comes to the tape, which is turned from then on.
  std::function<void()> listeners_came = [] {};
  /// Told when a client begins to watch the numbers: a look is taken at once, then each second.
  std::function<void()> watchers_came = [] {};
  /// Only this machine is meant: a loopback address, and no tokens. Set before the first
  /// request.
  bool loopback_alone = false;
  std::uint64_t started_at_ms = 0;

 private:
  Options options_;
  Segment segment_;
  Notes notes_;
  Tokens tokens_;
  Tape tape_;
  StreamCount streams_;
  SchemaBook schemas_;
  StatsLog stats_;
  BulkMeter bulk_meter_;
  SharedLook<Census> census_;
};

}  // namespace ojs_shm::gateway
