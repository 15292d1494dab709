// SPDX-License-Identifier: Apache-2.0
// What a pool is told, refuses and shows.

#include "tests/unit/engine/pools/pool_members.hpp"

namespace ojs_shm::test {
namespace {

TEST(Pools, FS_T21_what_a_pool_refuses) {
  const auto refused = [](std::string_view json) {
    const auto read = parse_pool_settings(json);
    return read ? std::string() : read.error().subject;
  };
  EXPECT_EQ(refused(R"({"strategy":"strict"})"), "queues");
  EXPECT_EQ(refused(R"({"queues":["a"],"strategy":"fastest"})"), "strategy");
  EXPECT_EQ(refused(R"({"queues":["a"],"weights":{"a":0}})"), "weights.a");
  EXPECT_EQ(refused(R"({"queues":["a"],"weights":{"a":-2}})"), "weights.a");
  EXPECT_EQ(refused(R"({"queues":["a"],"concurrency":"many"})"), "concurrency");
  EXPECT_EQ(refused(R"({"queues":["a"],"colour":1})"), "colour");
  EXPECT_EQ(refused(R"({"queues":["a"],"starvation_prevention":{"rotation_interval":"soon"}})"),
            "starvation_prevention.rotation_interval");
  EXPECT_EQ(refused("[]"), "pool");
  QuietSegment s;
  const auto subject = [&](PoolSettings settings) {
    const auto set = s.admin.set_pool("p", settings);
    return set ? std::string() : set.error().subject;
  };
  EXPECT_EQ(subject(pool_of({})), "queues");
  EXPECT_EQ(subject(pool_of({"a", "a"})), "queues");
  EXPECT_EQ(subject(pool_of({"Not a name"})), "queues");
  PoolSettings settings = pool_of({"a", "b", "c"});
  settings.weights = {{"d", 1}};
  EXPECT_EQ(subject(settings), "weights");
  settings.weights = {{"a", 1000}, {"b", 1}};
  settings.strategy = PoolStrategy::kWeighted;
  EXPECT_EQ(subject(settings), "weights");
  // FS_T14
  EXPECT_EQ(subject(preventing(PoolStrategy::kStrict, 0.34)),
            "starvation_prevention.min_dispatch_ratio");
  EXPECT_EQ(subject(preventing(PoolStrategy::kStrict, 1.5)),
            "starvation_prevention.min_dispatch_ratio");
  EXPECT_EQ(s.admin.set_pool("No Name", pool_of({"a"})).error().subject, "name");
}

TEST(Pools, FS_T21_FS_G2_FS_G3_what_a_pool_is_told_is_what_it_shows) {
  QuietSegment s;
  const auto read = parse_pool_settings(
      R"({"pool":{"name":"gpu","queues":["images","video"],"concurrency":4,"strategy":"weighted",
      "weights":{"images":4,"video":2},"isolated":true,"starvation_prevention":
      {"enabled":true,"rotation_interval":"PT45S","min_dispatch_ratio":0.1}}})");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(s.admin.set_pool("gpu", read.value()).value());
  EXPECT_EQ(
      print_pool(s.observer.pool("gpu").value()),
      R"({"name":"gpu","queues":["images","video"],"concurrency":4,"strategy":"weighted","weights":{"images":2,)"
      R"("video":1},"isolated":true,"starvation_prevention":{"enabled":true,"rotation_interval":"PT45S",)"
      R"("min_dispatch_ratio":0.1},"active_workers":0,"active_jobs":0,"waiting_jobs":0,"utilization":0,)"
      R"("dispatched":{}})");
  const auto plain = parse_pool_settings(R"({"queues":{"a":{"weight":3},"b":1}})");
  EXPECT_EQ(plain->queues, (Names{"a", "b"}));
  EXPECT_EQ(plain->strategy, PoolStrategy::kRoundRobin);
  EXPECT_EQ(plain->starvation_prevention.rotation_interval_ms, 30'000U);
  EXPECT_EQ(plain->starvation_prevention.min_dispatch_ratio, 0.05);
}

}  // namespace
}  // namespace ojs_shm::test
