// SPDX-License-Identifier: Apache-2.0
#include "shm/catalogue.hpp"

#include <algorithm>
#include <cstring>

#include <ojs_shm/census.hpp>

#include "engine/observing/catalogue.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

shm::Segment& words(QuietSegment& s) { return s.segment.attachment()->segment(); }

/// A counter that a later version may have; its words are those of another one.
shm::CatalogueRow later_counter(QuietSegment& s) {
  const shm::Catalogue catalogue(words(s));
  shm::CatalogueRow row;
  for (std::uint32_t i = 0; i < catalogue.size(); ++i)
    if (const auto found = catalogue.row(i);
        found && shm::Catalogue::label_of(*found) == "cancelled")
      row = *found;
  row.id = 4711;
  std::memset(row.label, 0, sizeof row.label);
  std::memcpy(row.label, "teleported", 10);
  return row;
}

TEST(Catalogue, a_monitor_shows_a_counter_of_a_later_version) {
  QuietSegment s;
  const std::string id = s.put();
  ASSERT_TRUE(s.producer.cancel(id).ok());
  shm::Catalogue::append(words(s), later_counter(s));
  const Census census = s.observer.census();
  ASSERT_FALSE(census.queue_counters.empty());
  EXPECT_EQ(census.queue_counters.back().label, "teleported");
  EXPECT_EQ(census.queue_counters.back().id, 4711U);
  EXPECT_EQ(census.totals().back(), 1U);
}

TEST(Catalogue, what_leads_out_of_the_segment_is_skipped) {
  QuietSegment s;
  const std::size_t known = s.observer.census().queue_counters.size();
  const shm::CatalogueRow good = later_counter(s);
  const auto append = [&s, &good](auto change) {
    shm::CatalogueRow row = good;
    change(row);
    shm::Catalogue::append(words(s), row);
  };
  append([](auto& row) { row.offset = ~7ULL; });
  append([&s](auto& row) { row.offset = words(s).size(); });
  append([](auto& row) { row.rows = ~0U; });
  append([](auto& row) { row.row_bytes = ~7U; });
  append([](auto& row) { row.cells = 1U << 20, row.cell_bytes = 1U << 20; });
  append([](auto& row) { row.offset += 1; });
  append([](auto& row) { row.word_bytes = 16; });
  append([](auto& row) { row.label[0] = '\x1b'; });
  append([](auto& row) { row.label[0] = '\0'; });
  EXPECT_EQ(s.observer.census().queue_counters.size(), known);
}

TEST(Catalogue, the_pools_are_those_that_the_observer_counts) {
  QuietSegment s;
  for (int i = 0; i < 20; ++i) s.put();
  s.drain();
  for (int i = 0; i < 5; ++i) s.put();
  const SegmentInfo info = s.observer.segment_info();
  const Census census = s.observer.census();
  for (const PoolInfo& pool : info.pools) {
    const auto same = [&pool](const PoolInfo& each) { return each.name == pool.name; };
    const auto found = std::find_if(census.segment.pools.begin(), census.segment.pools.end(), same);
    ASSERT_NE(found, census.segment.pools.end()) << pool.name;
    EXPECT_EQ(found->used, pool.used) << pool.name;
    EXPECT_EQ(found->capacity, pool.capacity) << pool.name;
    EXPECT_EQ(found->unit_bytes, pool.unit_bytes) << pool.name;
  }
}

/// What is taken of the memory pool of that name; its capacity in `capacity`.
std::uint64_t taken(const QuietSegment& s, std::string_view name,
                    std::uint64_t* capacity = nullptr) {
  for (const PoolInfo& pool : s.observer.census().segment.pools)
    if (pool.name == name) {
      if (capacity != nullptr) *capacity = pool.capacity;
      return pool.used;
    }
  ADD_FAILURE() << "no pool " << name;
  return ~std::uint64_t{0};
}

TEST(Catalogue, the_tables_that_can_be_full_are_pools_too) {
  QuietSegment s(few_slots(8192));
  for (const std::string_view name : {"limits", "tickets", "crons", "workers", "worker-pools"})
    EXPECT_EQ(taken(s, name), 0U) << name;
  std::uint64_t keys = 0;
  while (s.admin.set_limit("api:" + std::to_string(keys), {.concurrency = 1}).ok()) ++keys;
  EXPECT_GT(keys, 64U) << "so many that their hashes begin with any digit";
  EXPECT_EQ(taken(s, "limits"), keys);
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(s.admin.set_cron({.name = name, .expression = "@daily", .job = spec_of()}).ok());
  EXPECT_EQ(taken(s, "crons"), 3U);
  ASSERT_TRUE(s.admin.remove_cron("b").ok());
  EXPECT_EQ(taken(s, "crons"), 2U);
  for (const char* name : {"x", "y"}) ASSERT_TRUE(s.admin.set_pool(name, {.queues = {"q"}}).ok());
  EXPECT_EQ(taken(s, "worker-pools"), 2U);
  ASSERT_TRUE(s.admin.remove_pool("x").ok());
  EXPECT_EQ(taken(s, "worker-pools"), 1U);
  {
    const auto worker = Worker::attach(s.segment, {.id = "w-1"});
    ASSERT_TRUE(worker.ok());
    EXPECT_EQ(taken(s, "workers"), 1U);
  }
  EXPECT_EQ(taken(s, "workers"), 0U);
  // An enqueue that waits for room, and one that waited.
  const engine::TicketControl free(s.store().tickets[2].control.load()), waiting = free.take(0, 1);
  s.store().tickets[2].control.store(waiting.word, shm::Point::kNone);
  EXPECT_EQ(taken(s, "tickets"), 1U);
  s.store().tickets[2].control.store(waiting.void_().word, shm::Point::kNone);
  EXPECT_EQ(taken(s, "tickets"), 0U);
  // As large as a refusal says.
  const std::pair<const char*, std::uint64_t> sizes[] = {{"limits", s.store().limit_keys.size()},
                                                         {"tickets", s.store().tickets.size()},
                                                         {"crons", engine::kCrons},
                                                         {"workers", s.store().workers.size()},
                                                         {"worker-pools", engine::kPools}};
  for (const auto& [name, size] : sizes) {
    std::uint64_t capacity = 0;
    taken(s, name, &capacity);
    EXPECT_EQ(capacity, size) << name;
  }
}

TEST(Catalogue, a_limit_that_was_given_up_is_free) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_limit("api:old", {.concurrency = 1}).ok());
  ASSERT_EQ(taken(s, "limits"), 1U);
  for (std::uint32_t i = 0; i < s.store().limit_keys.size(); ++i)
    if (shm::Word& hash = s.store().limit_keys[i].name_hash; hash.load() != 0)
      hash.store(engine::kLimitGone, shm::Point::kNone);
  EXPECT_EQ(taken(s, "limits"), 0U);
}

TEST(Catalogue, the_counters_are_those_of_the_queue) {
  QuietSegment s;
  for (int i = 0; i < 3; ++i) s.put();
  s.drain();
  const std::string id = s.put();
  ASSERT_TRUE(s.producer.reprioritize(id, 1).ok());
  ASSERT_TRUE(s.producer.cancel(id).ok());
  const QueueInfo info = s.queue();
  const Census census = s.observer.census();
  const auto value = [&census](std::string_view label) {
    for (std::size_t i = 0; i < census.queue_counters.size(); ++i)
      if (census.queue_counters[i].label == label) return census.queues[0].counters[i];
    return ~std::uint64_t{0};
  };
  EXPECT_EQ(value("enqueued"), info.enqueued_total);
  EXPECT_EQ(value("dispatched"), info.dispatched_total);
  EXPECT_EQ(value("completed"), info.completed_total);
  EXPECT_EQ(value("cancelled"), 1U);
  EXPECT_EQ(value("reprioritized"), 1U);
}

}  // namespace
}  // namespace ojs_shm::test
