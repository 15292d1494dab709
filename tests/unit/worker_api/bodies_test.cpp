// SPDX-License-Identifier: Apache-2.0
// A job comes out as it went in, whatever its size.

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

std::string text_of(std::size_t size) {
  std::string args = "[\"";
  for (std::size_t i = 0; args.size() + 2 < size; ++i) args += static_cast<char>('a' + i * 7 % 26);
  return args + "\"]";
}

TEST(Bodies, of_every_size_come_out_as_they_went_in) {
  QuietSegment s;
  for (const std::size_t size :
       {4, 100, 134, 135, 136, 143, 144, 145, 255, 256, 257, 511, 512, 513, 4096, 65'000}) {
    const std::string args = text_of(size), extra = size % 2 == 0 ? R"({"meta":{"a":1}})" : "";
    JobSpec spec = spec_of(1);
    spec.args = args;
    if (size < 60'000) spec.extra = extra;
    const std::string id = s.put(spec);
    EXPECT_EQ(s.get(id).args, args) << size;
    ASSERT_EQ(s.take(), id);
    EXPECT_EQ(s.job.type(), "unit.test");
    EXPECT_EQ(s.job.args(), args) << size;
    EXPECT_EQ(s.job.extra(), spec.extra);
    ASSERT_TRUE(s.worker.ack(s.job, args).ok());
    EXPECT_EQ(s.get(id).result, args) << size;
  }
}

TEST(Bodies, above_the_maximum_are_refused_and_the_error_names_it) {
  QuietSegment s;
  const std::string args = text_of(65'536);  // the type comes on top
  JobSpec spec = spec_of(1);
  spec.args = args;
  const Error error = s.producer.enqueue(spec).error();
  EXPECT_EQ(error.code, Code::kTooLarge);
  EXPECT_EQ(error.bound, 65'536U);
  s.put(1);
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(s.worker.ack(s.job, text_of(65'537)).code(), Code::kTooLarge);
  // it is still held, and the largest result fits
  EXPECT_TRUE(s.worker.ack(s.job, text_of(65'536)).ok());
}

/// One handle keeps the hints of many blocks to itself; another fills the segment, to the last
/// block.
TEST(Bodies, a_block_is_whose_it_says_whoever_has_its_hint) {
  QuietSegment s;
  Producer keeps_hints = Producer::attach(s.segment).value();
  const std::string small = text_of(200), large = text_of(40'000);
  JobSpec spec = spec_of(1);
  spec.args = small;
  ASSERT_TRUE(keeps_hints.enqueue(spec).ok());
  const std::uint64_t kept = s.pool_use("blocks");
  std::vector<std::pair<std::string, std::string>> bodies;
  for (const std::string* args : {&large, &small}) {
    spec.args = *args;
    for (auto put = s.producer.enqueue(spec);; put = s.producer.enqueue(spec)) {
      if (!put) {
        EXPECT_EQ(put.error().subject, "blocks") << put.error().message;
        break;
      }
      bodies.emplace_back(put->str(), *args);
    }
  }
  ASSERT_GT(bodies.size(), kept);
  for (const PoolInfo& pool : s.observer.segment_info().pools)
    if (pool.name == "blocks") {
      EXPECT_EQ(pool.used, pool.capacity);
    }
  EXPECT_EQ(keeps_hints.enqueue(spec).error().subject, "blocks");
  for (const auto& [id, args] : bodies) EXPECT_EQ(s.get(id).args, args);
}

TEST(Bodies, wrong_types_queues_and_args_are_refused) {
  QuietSegment s;
  for (const char* type : {"", "A", ".a", "a.", "a b", "1a"}) {
    JobSpec spec = spec_of(1);
    spec.type = type;
    EXPECT_EQ(s.producer.enqueue(spec).error().subject, "type") << type;
  }
  for (const char* queue : {"", "A", "-a", "a_b", "a b"}) {
    JobSpec spec = spec_of(1, queue);
    EXPECT_EQ(s.producer.enqueue(spec).error().subject, "queue") << queue;
  }
  for (const char* args : {"", "1", "{}", "[", "]"}) {
    JobSpec spec = spec_of(1);
    spec.args = args;
    EXPECT_EQ(s.producer.enqueue(spec).error().subject, "args") << args;
  }
  EXPECT_TRUE(s.observer.list({}).empty());
}

TEST(Bodies, the_ninth_queue_of_eight_is_refused_by_its_pool) {
  QuietSegment s;
  s.put(1);
  for (int i = 1; i < 8; ++i) s.put(1, "q" + std::to_string(i));
  const Error error = s.producer.enqueue(spec_of(1, "one-more")).error();
  EXPECT_EQ(error.code, Code::kSegmentFull);
  EXPECT_EQ(error.subject, "queues");
  EXPECT_EQ(error.bound, 8U);
}

}  // namespace
}  // namespace ojs_shm::test
