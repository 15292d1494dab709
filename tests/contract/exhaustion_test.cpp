// SPDX-License-Identifier: Apache-2.0
//
// A pool of a segment runs out: the error tells its true use and what to set, and one who sets it
// gets at least twice the room. Method: fill the pool, take the flags out of the message as a
// person would, start a broker with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;

/// The flags behind the last "with ".
std::vector<std::string> flags_in(const std::string& advice) {
  const auto begin = advice.rfind("with --");
  if (begin == std::string::npos) return {};
  std::istringstream words(
      advice.substr(begin + 5, advice.find_first_of(";,\"", begin) - begin - 5));
  std::vector<std::string> flags;
  for (std::string word; words >> word;) flags.push_back(word);
  return flags;
}

PoolInfo pool_of(const LiveSegment& segment, const std::string& name) {
  const auto observer = Observer::attach(segment.where());
  EXPECT_TRUE(observer.ok());
  for (const PoolInfo& pool : observer.value().segment_info().pools)
    if (pool.name == name) return pool;
  ADD_FAILURE() << "no pool " << name;
  return {};
}

void expect_true_use_and_good_advice(const LiveSegment& segment, const Error& error,
                                     const std::string& pool) {
  EXPECT_EQ(error.code, Code::kSegmentFull) << error.message;
  EXPECT_EQ(error.subject, pool) << error.message;
  EXPECT_EQ(error.unit, pool);
  const PoolInfo full = pool_of(segment, pool);
  EXPECT_EQ(error.depth, full.used) << error.message;
  EXPECT_EQ(error.bound, full.capacity);
  EXPECT_THAT(error.message,
              HasSubstr(std::to_string(full.used) + " of " + std::to_string(full.capacity)));
  const std::vector<std::string> flags = flags_in(error.message);
  ASSERT_FALSE(flags.empty()) << error.message;
  const LiveSegment larger(flags);
  EXPECT_GE(pool_of(larger, pool).capacity, 2 * full.capacity) << error.message;
}

/// Enqueues until it is refused.
Error fill(Producer& producer, const std::function<JobSpec(int)>& job) {
  for (int i = 0; i < 100'000; ++i)
    if (const auto done = producer.enqueue(job(i)); !done) return done.error();
  ADD_FAILURE() << "nothing ran out";
  return {};
}

TEST(Exhaustion, of_slots) {
  const LiveSegment segment({"--slots", "500"});
  Producer producer = Producer::attach(segment.where()).value();
  const Error error = fill(producer, [](int) { return JobSpec{.type = "a"}; });
  EXPECT_EQ(error.depth, 500U);
  expect_true_use_and_good_advice(segment, error, "slots");
}

TEST(Exhaustion, of_blocks_that_are_too_few_for_a_body_but_not_none) {
  const LiveSegment segment({"--slots", "64"});
  Producer producer = Producer::attach(segment.where()).value();
  const std::string args = "[\"" + std::string(600'000, 'x') + "\"]";
  const Error error = fill(producer, [&](int) { return JobSpec{.type = "a", .args = args}; });
  EXPECT_LT(error.depth, error.bound);
  EXPECT_THAT(error.message, HasSubstr("what is left does not suffice"));
  expect_true_use_and_good_advice(segment, error, "blocks");
}

TEST(Exhaustion, of_queues) {
  const LiveSegment segment({"--slots", "500", "--max-queues", "4"});
  Producer producer = Producer::attach(segment.where()).value();
  std::string queue;
  const Error error = fill(producer, [&](int i) {
    queue = "q" + std::to_string(i);
    return JobSpec{.type = "a", .queue = queue};
  });
  EXPECT_EQ(error.depth, 4U);
  expect_true_use_and_good_advice(segment, error, "queues");
}

TEST(Exhaustion, of_levels) {
  const LiveSegment segment(
      // more than can have all levels
      {"--slots", "34000", "--max-queues", "130", "--max-tenants", "2"});
  Producer producer = Producer::attach(segment.where()).value();
  std::string queue;
  const Error error = fill(producer, [&](int i) {
    queue = i < 256 ? "default" : "q" + std::to_string(i / 256);
    return JobSpec{.type = "a", .queue = queue, .priority = i % 256};
  });
  EXPECT_EQ(error.code, Code::kSegmentFull) << error.message;
  EXPECT_EQ(error.subject, "levels") << error.message;
  EXPECT_GT(error.depth, 127U * 256U);
  EXPECT_EQ(error.depth, pool_of(segment, "levels").used);
  EXPECT_THAT(error.message, HasSubstr("no segment can have more"));
  // Neither queues nor levels come back, so doctor must not promise it.
  const Finished doctor = segment.cli({"doctor"});
  EXPECT_EQ(doctor.exit_code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("no segment can have more"));
}

TEST(Exhaustion, of_handles) {
  const LiveSegment segment({"--slots", "500", "--handles", "10"});
  std::vector<Producer> producers;
  Error error;
  for (int i = 0; i < 100; ++i) {
    auto producer = Producer::attach(segment.where());
    if (!producer) {
      error = producer.error();
      break;
    }
    producers.push_back(std::move(producer).value());
  }
  EXPECT_EQ(error.bound, 10U) << "what --handles said";
  EXPECT_THAT(error.message, HasSubstr("8 more are kept for supervision"));
  const Finished refused = segment.cli({"enqueue", "-t", "a", "--json"});
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_EQ(member(refused.err, "error.code"), "SEGMENT_FULL") << refused.err;
  EXPECT_EQ(member(refused.err, "error.bound"), "10") << refused.err;
  const Finished doctor = segment.cli({"doctor"});
  EXPECT_THAT(doctor.out, HasSubstr("pool handles\tproblem\t10 of 10 used"));
  EXPECT_THAT(
      doctor.out,
      HasSubstr(
          "make the next one with --handles 20 --slots 500, or end producers or workers now"));
  expect_true_use_and_good_advice(segment, error, "handles");
}

TEST(Exhaustion, what_is_advised_doubles_each_pool_or_nearly) {
  const LiveSegment segment({"--slots", "500"});
  const auto pools = Observer::attach(segment.where()).value().segment_info().pools;
  EXPECT_EQ(pools.size(), 9U);
  for (const PoolInfo& pool : pools) {
    if (pool.name == "parts") continue;  // it has two sizes, and this is the larger one
    const LiveSegment larger(flags_in("with " + pool.larger));
    EXPECT_GE(pool_of(larger, pool.name).capacity, pool.capacity * 19 / 10)
        << pool.name << ": " << pool.larger;
  }
}

/// All that can be chosen, as a broker's flags say it.
std::string chosen(const LiveSegment& segment) {
  const SegmentInfo info = Observer::attach(segment.where()).value().segment_info();
  struct stat file {};
  EXPECT_EQ(::stat(info.path.c_str(), &file), 0);
  std::ostringstream text;
  text << info.convention << ' ' << info.max_body_bytes << ' ' << info.retention_ms << ' '
       << std::oct << (file.st_mode & 0777);
  return text.str();
}

TEST(Exhaustion, what_is_advised_is_taken_by_a_broker_and_gives_no_less_of_anything) {
  const std::vector<std::vector<std::string>> segments = {
      {"--slots", "20", "--max-queues", "1", "--max-body", "2000", "--handles", "4"},
      {"--slots", "100", "--size", "3M", "--max-queues", "2", "--max-tenants", "6", "--max-body",
       "1000", "--handles", "3"},
      {"--slots", "300", "--size", "6M", "--convention", "qo", "--retention", "90s", "--mode",
       "0600"},
      {"--size", "4M", "--max-body", "64K", "--convention", "ojs-core"}};
  for (const std::vector<std::string>& flags : segments) {
    const LiveSegment segment(flags);
    const SegmentInfo before = Observer::attach(segment.where()).value().segment_info();
    for (const PoolInfo& pool : before.pools) {
      SCOPED_TRACE(flags[0] + " " + flags[1] + " " + pool.name + ": " + pool.larger);
      if (pool.larger.empty()) {
        EXPECT_EQ(pool.name, "parts");  // there are two sizes
        continue;
      }
      const LiveSegment larger(flags_in("with " + pool.larger));
      EXPECT_EQ(chosen(larger), chosen(segment));
      const SegmentInfo after = Observer::attach(larger.where()).value().segment_info();
      for (std::size_t i = 0; i < before.pools.size(); ++i)
        EXPECT_GE(after.pools[i].capacity,
                  before.pools[i].capacity + (before.pools[i].name == pool.name ? 1 : 0))
            << before.pools[i].name;
    }
  }
}

TEST(Exhaustion, of_blocks_in_a_segment_of_small_bodies_gives_advice_as_printed) {
  const LiveSegment segment(
      {"--slots", "20", "--max-queues", "1", "--max-body", "2000", "--handles", "4"});
  Producer producer = Producer::attach(segment.where()).value();
  const std::string args = "[\"" + std::string(1'990, 'x') + "\"]";
  const Error error = fill(producer, [&](int) { return JobSpec{.type = "a", .args = args}; });
  expect_true_use_and_good_advice(segment, error, error.subject);
  for (const char* kept : {"--slots ", "--max-queues 1", "--max-body 2000", "--handles 4"})
    EXPECT_THAT(error.message, HasSubstr(kept));
}

TEST(Exhaustion, of_a_segment_of_defaults_names_nothing_else) {
  const LiveSegment segment;
  EXPECT_EQ(pool_of(segment, "handles").larger, "--handles 240");
  EXPECT_EQ(pool_of(segment, "queues").larger, "--max-queues 128");
  EXPECT_EQ(pool_of(segment, "slots").larger.rfind("--slots 204800 --size ", 0), 0U);
  const LiveSegment half({"--slots", "500", "--max-queues", "32"});
  EXPECT_EQ(pool_of(half, "queues").larger, "--max-queues 64 --slots 500")
      << "what changes is named, default or not";
}

TEST(Exhaustion, what_no_segment_can_have_more_of_is_not_advised) {
  // as many levels as there can be
  const LiveSegment segment({"--slots", "40000", "--max-queues", "300"});
  EXPECT_EQ(pool_of(segment, "levels").larger, "");
  EXPECT_EQ(pool_of(segment, "queues").larger, "--max-queues 600 --slots 40000");
  EXPECT_EQ(pool_of(segment, "parts").larger, "");
  const LiveSegment small({"--slots", "500", "--max-queues", "31"});
  EXPECT_EQ(pool_of(small, "parts").larger, "--max-queues 32 --slots 500");
  EXPECT_EQ(pool_of(small, "parts").capacity * 2, pool_of(segment, "parts").capacity);
  EXPECT_EQ(pool_of(segment, "ids").larger.rfind("--slots 80000 --size ", 0), 0U);
}

}  // namespace
}  // namespace ojs_shm::test
