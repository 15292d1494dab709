// SPDX-License-Identifier: Apache-2.0
//
// Enqueues that wait for room, of which a proxy's one descriptor tells.
#include <poll.h>
#include <sys/eventfd.h>

#include <optional>
#include <thread>

#include <ojs_shm/proxy.hpp>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using namespace std::chrono_literals;
constexpr EnqueueOptions kLong{.block_timeout = 10min};
using Tags = std::vector<std::uint64_t>;

struct ProxyRoom : testing::Test {
  QuietSegment s;
  Proxy proxy = Proxy::attach(s.segment).value();

  void bound(std::uint64_t jobs, BackpressureStrategy strategy = BackpressureStrategy::kBlock) {
    ASSERT_TRUE(s.admin.set_queue("default", {.max_depth = jobs, .strategy = strategy}).ok());
  }
  void fill(std::uint64_t jobs) {
    bound(jobs);
    for (std::uint64_t i = 0; i < jobs; ++i) s.put();
  }
  WaitingEnqueue begin(std::uint64_t tag, EnqueueOptions options = kLong, std::size_t jobs = 1) {
    const std::vector<JobSpec> specs(jobs, spec_of());
    return proxy.begin_enqueue(specs, options, tag).value();
  }
  bool readable() {
    pollfd one{proxy.descriptor().value(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }
  /// Asks as an event loop does.
  Tags decided() {
    Tags tags;
    EXPECT_TRUE(eventually([&] {
      if (!readable()) return false;
      eventfd_t count = 0;
      ::eventfd_read(proxy.descriptor().value(), &count);
      tags = proxy.take_decided();
      return !tags.empty();
    }));
    return tags;
  }
  static std::string id_of(WaitingEnqueue& waiting) {
    const auto outcome = waiting.poll();
    return outcome && outcome->ok() ? outcome->value().front().str() : std::string();
  }
};

TEST_F(ProxyRoom, BP_T05_the_descriptor_tells_whose_turn_has_come_and_of_no_other) {
  fill(1);
  WaitingEnqueue first = begin(7), second = begin(8), third = begin(9);
  EXPECT_EQ(s.queue().waiting, 3U);
  EXPECT_EQ(proxy.take_decided(), Tags());
  for (auto [waiting, tag] : {std::pair(&first, 7), std::pair(&second, 8), std::pair(&third, 9)}) {
    ASSERT_NE(s.take(), "");
    EXPECT_EQ(decided(), Tags{static_cast<std::uint64_t>(tag)});
    EXPECT_NE(id_of(*waiting), "");
    EXPECT_EQ(proxy.take_decided(), Tags()) << "each once";
  }
  EXPECT_EQ(s.queue().waiting, 0U);
}

TEST_F(ProxyRoom, BP_T05_it_stands_in_one_line_with_those_of_other_handles) {
  fill(1);
  const JobSpec spec = spec_of();
  WaitingEnqueue first = begin(1);
  WaitingEnqueue second = s.producer.begin(std::span(&spec, 1), kLong).value();
  WaitingEnqueue third = begin(3);
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(decided(), Tags{1});
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(proxy.take_decided(), Tags());
  EXPECT_FALSE(third.poll()) << "another came before it";
  EXPECT_NE(id_of(second), "");
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(decided(), Tags{3});
}

TEST_F(ProxyRoom, BP_T05_as_many_as_have_got_room_are_told_at_once_and_no_more_than_asked_for) {
  fill(4);
  std::vector<WaitingEnqueue> waiting;
  for (std::uint64_t tag = 0; tag < 6; ++tag) waiting.push_back(begin(tag));
  for (int i = 0; i < 4; ++i) ASSERT_NE(s.take(), "");
  EXPECT_EQ(proxy.take_decided(3), (Tags{0, 1, 2}));
  EXPECT_TRUE(readable());
  EXPECT_EQ(decided(), Tags{3});
  EXPECT_EQ(proxy.take_decided(), Tags());
}

TEST_F(ProxyRoom, what_finds_room_at_once_is_told_as_well_unless_its_owner_has_asked) {
  WaitingEnqueue asked = begin(1);
  EXPECT_NE(id_of(asked), "");
  WaitingEnqueue told = begin(2);
  EXPECT_EQ(decided(), Tags{2});
  EXPECT_NE(id_of(told), "");
}

TEST_F(ProxyRoom, what_was_decided_is_told_though_other_queues_are_listened_to_since) {
  WaitingEnqueue told = begin(2);
  ASSERT_TRUE(proxy.await_jobs({"other"}, {}).ok());
  EXPECT_EQ(decided(), Tags{2});
}

TEST_F(ProxyRoom, BP_T06_the_descriptor_tells_when_a_time_is_over) {
  fill(1);
  WaitingEnqueue patient = begin(1), hasty = begin(2, {.block_timeout = 20ms});
  EXPECT_EQ(decided(), Tags{2});
  EXPECT_GE(std::chrono::steady_clock::now(), hasty.deadline());
  ASSERT_TRUE(hasty.poll());
  EXPECT_EQ(hasty.poll()->code(), Code::kQueueFull);
  EXPECT_FALSE(patient.poll());
}

TEST_F(ProxyRoom, BP_T09_one_that_is_given_up_leaves_its_place_to_the_next) {
  fill(1);
  std::optional<WaitingEnqueue> first = begin(1);
  WaitingEnqueue second = begin(2);
  std::optional<WaitingEnqueue> third = begin(3);
  first.reset();
  third.reset();
  EXPECT_EQ(s.queue().waiting, 1U);
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(decided(), Tags{2});
}

TEST_F(ProxyRoom, BP_T21_a_batch_at_the_head_holds_the_others_up) {
  fill(3);
  WaitingEnqueue batch = begin(1, kLong, 2), single = begin(2);
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(proxy.take_decided(), Tags());
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(decided(), Tags{1});
  EXPECT_FALSE(single.poll());
}

TEST_F(ProxyRoom, a_full_tenant_holds_up_no_other) {
  ASSERT_TRUE(
      s.admin
          .set_queue("default", {.strategy = BackpressureStrategy::kBlock, .tenant_max_depth = 1})
          .ok());
  const auto of = [&](std::string_view tenant, std::uint64_t tag) {
    JobSpec spec = spec_of();
    spec.tenant = tenant;
    return proxy.begin_enqueue(std::span(&spec, 1), kLong, tag).value();
  };
  WaitingEnqueue a = of("a", 1), next_of_a = of("a", 2), last_of_a = of("a", 3), b = of("b", 4);
  EXPECT_EQ(decided(), (Tags{1, 4}));
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(decided(), Tags{2});
  EXPECT_FALSE(last_of_a.poll());
}

TEST_F(ProxyRoom, when_the_queue_lets_none_wait_any_more_all_are_told) {
  fill(1);
  std::vector<WaitingEnqueue> waiting;
  for (std::uint64_t tag = 0; tag < 3; ++tag) waiting.push_back(begin(tag));
  bound(1, BackpressureStrategy::kReject);
  EXPECT_EQ(decided(), (Tags{0, 1, 2}));
  EXPECT_EQ(waiting[2].poll()->code(), Code::kQueueFull);
}

TEST_F(ProxyRoom, the_same_descriptor_tells_of_jobs_and_ends_meanwhile) {
  fill(1);
  const std::string active = s.take();
  s.put();
  WaitingEnqueue waiting = begin(1);
  const int fd = proxy.await_end(active).value();
  EXPECT_EQ(fd, proxy.descriptor().value());
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  std::vector<std::string> ended;
  EXPECT_TRUE(eventually([&] {
    eventfd_t count = 0;
    if (readable()) ::eventfd_read(fd, &count);
    ended = proxy.take_ended();
    return !ended.empty();
  }));
  EXPECT_EQ(ended, std::vector<std::string>{active});
  EXPECT_EQ(proxy.take_decided(), Tags());
  ASSERT_EQ(proxy.fetch({}).value().size(), 1U);
  EXPECT_EQ(decided(), Tags{1});
}

TEST_F(ProxyRoom, what_waits_outlives_its_proxy) {
  fill(1);
  std::optional<Proxy> other = Proxy::attach(s.segment).value();
  const JobSpec spec = spec_of();
  WaitingEnqueue waiting = other->begin_enqueue(std::span(&spec, 1), kLong).value();
  other.reset();
  EXPECT_EQ(s.queue().waiting, 1U);
  ASSERT_NE(s.take(), "");
  EXPECT_NE(id_of(waiting), "");
}

TEST_F(ProxyRoom, it_says_which_were_there_already) {
  JobSpec spec = spec_of();
  const JobUnique unique =
      JobUnique::of(spec, R"({"keys":["type"],"on_conflict":"ignore"})").value();
  spec.unique = &unique;
  WaitingEnqueue first = proxy.begin_enqueue(std::span(&spec, 1), kLong, 1).value();
  WaitingEnqueue again = proxy.begin_enqueue(std::span(&spec, 1), kLong, 2).value();
  EXPECT_EQ(id_of(first), id_of(again));
  EXPECT_FALSE(first.deduplicated());
  EXPECT_TRUE(again.deduplicated());
}

TEST_F(ProxyRoom, no_more_wait_than_the_segment_was_made_for) {
  QuietSegment small([] {
    SegmentOptions options = few_slots();
    options.max_waiting = 3;
    return options;
  }());
  ASSERT_TRUE(
      small.admin.set_queue("default", {.max_depth = 1, .strategy = BackpressureStrategy::kBlock})
          .ok());
  small.put();
  Proxy own = Proxy::attach(small.segment).value();
  const JobSpec spec = spec_of();
  std::vector<WaitingEnqueue> waiting;
  for (int i = 0; i < 4; ++i)
    waiting.push_back(own.begin_enqueue(std::span(&spec, 1), kLong).value());
  EXPECT_FALSE(waiting[2].poll());
  ASSERT_EQ(waiting[3].poll()->code(), Code::kSegmentFull);
  EXPECT_NE(waiting[3].poll()->error().message.find("--max-waiting"), std::string::npos);
}

}  // namespace
}  // namespace ojs_shm::test
