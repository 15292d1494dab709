// SPDX-License-Identifier: Apache-2.0
// Method: handles in threads of their own tell as fast as they can, in a segment that keeps few
// events, while readers look. Each event says its handle and its number, so a reader can tell
// whether it got each one once and in order, or was told that it is lost. First one handle, then
// several.

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>

#include "shm/atomics.hpp"
#include "tests/support/process.hpp"

namespace ojs_shm::test {
namespace {

/// What one reader saw of each handle.
struct Seen {
  std::map<std::uint32_t, std::uint64_t> last;
  std::uint64_t all = 0, wrong = 0, lost = 0;

  void read(EventReader& reader) {
    for (Event event; reader.next(event); ++all) {
      wrong += event.sequence <= last[event.handle] || event.type != "priority.changed" ||
                       event.previous_priority == event.priority || event.queue != "default"
                   ? 1
                   : 0;
      last[event.handle] = event.sequence;
    }
    lost = reader.lost();
  }
};

void tell_and_read(unsigned tellers, std::uint64_t changes) {
  const ScratchDirectory folder;
  SegmentOptions options;
  options.slots = 256;
  options.max_handles = 16;
  const Segment segment = Segment::create({"told", folder.path()}, options).value();
  Admin admin = Admin::attach(segment).value();
  std::vector<std::string> ids;
  JobSpec spec;
  spec.type = "told.job";
  for (unsigned i = 0; i < tellers; ++i)
    ids.push_back(admin.producer().enqueue(spec).value().str());
  ASSERT_TRUE(admin.set_events(true).ok());

  const Observer observer = Observer::attach({"told", folder.path()}).value();
  shm::LocalFlag all_told;
  std::vector<Seen> seen(2);
  std::vector<std::thread> reading, telling;
  for (Seen& one : seen)
    reading.emplace_back([&one, &all_told, reader = observer.events({.settle_ms = 0})]() mutable {
      while (!all_told.get()) one.read(reader);
      one.read(reader);
    });
  for (const std::string& id : ids)
    telling.emplace_back([&segment, &id, changes] {
      Producer producer = Producer::attach(segment).value();
      for (std::uint64_t i = 0; i < changes; ++i)
        EXPECT_TRUE(producer.reprioritize(id, static_cast<std::int64_t>(i % 2)).ok());
    });
  for (std::thread& thread : telling) thread.join();
  all_told.set();
  for (std::thread& thread : reading) thread.join();
  for (const Seen& one : seen) {
    EXPECT_EQ(one.wrong, 0U);
    EXPECT_EQ(one.all + one.lost, tellers * changes) << one.lost << " lost";
    EXPECT_GT(one.all, 0U);
  }
  EXPECT_TRUE(observer.audit().empty());
}

TEST(EventsUnderLoad, of_one_handle) { tell_and_read(1, 20'000); }
TEST(EventsUnderLoad, of_several_handles_beside_two_readers) { tell_and_read(4, 20'000); }

}  // namespace
}  // namespace ojs_shm::test
