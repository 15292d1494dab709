// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {

inline QueueSettings bounds(std::uint64_t jobs,
                            BackpressureStrategy strategy = BackpressureStrategy::kReject) {
  QueueSettings settings;
  settings.max_depth = jobs;
  settings.strategy = strategy;
  return settings;
}

/// A queue that is filled up to a bound, and what it says of it.
class Pressed : public testing::Test {
 protected:
  void set(const QueueSettings& settings) {
    ASSERT_TRUE(s.admin.set_queue("default", settings).ok());
  }
  Error refused(const JobSpec& spec = spec_of()) {
    const auto put = s.producer.enqueue(spec);
    EXPECT_EQ(put.code(), Code::kQueueFull);
    return put.ok() ? Error{} : put.error();
  }
  std::vector<std::string> put_all(int count, std::optional<std::int64_t> priority = {}) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) ids.push_back(s.put(priority));
    return ids;
  }
  void begin_telling() {
    ASSERT_TRUE(s.admin.set_events(true).ok());
    reader.emplace(s.observer.events({.settle_ms = 0}));
  }
  std::vector<Event> told(std::string_view type) {
    std::vector<Event> events;
    for (Event event; reader->next(event);)
      if (event.type == type) events.push_back(event);
    return events;
  }

  QuietSegment s{few_slots(4096)};
  std::optional<EventReader> reader;
};

}  // namespace ojs_shm::test
