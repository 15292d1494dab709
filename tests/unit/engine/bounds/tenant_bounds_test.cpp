// SPDX-License-Identifier: Apache-2.0
// Bounds of tenants within a queue: exact for each, and no other's business.

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/bounds/account_look.hpp"
#include "engine/tenants/tenant_rules.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using namespace std::chrono_literals;
constexpr EnqueueOptions kLong{.block_timeout = 30s};

class TenantBounds : public testing::Test {
 protected:
  void set(const QueueSettings& settings) {
    const Status set = s.admin.set_queue("default", settings);
    ASSERT_TRUE(set.ok()) << set.error().message;
  }
  static JobSpec spec_for(std::string_view tenant, std::int64_t priority = 0) {
    JobSpec spec = spec_of(priority);
    spec.tenant = tenant;
    return spec;
  }
  std::string put_for(std::string_view tenant, std::int64_t priority = 0) {
    return s.put(spec_for(tenant, priority));
  }
  Code put_code(std::string_view tenant) { return s.producer.enqueue(spec_for(tenant)).code(); }
  std::uint64_t charge_of(std::string_view tenant) {
    const std::uint32_t at =
        engine::find_account(s.store(), engine::mix_key(0, engine::hash_tenant(tenant)));
    if (at == engine::kNoIndex) return 0;
    for (;;) {  // the sums lack nothing that left, only if no lane was let in meanwhile
      const std::uint64_t reserved = s.store().accounts[at].reserved.load();
      const std::uint64_t charge = engine::account_charge(s.store(), at);
      if (s.store().accounts[at].reserved.load() == reserved) return charge;
    }
  }
  std::uint64_t jobs_of(std::string_view tenant) { return engine::charged_jobs(charge_of(tenant)); }
  WaitingEnqueue begin(std::string_view tenant, std::size_t jobs = 1) {
    const std::vector<JobSpec> specs(jobs, spec_for(tenant));
    return s.producer.begin(specs, kLong).value();
  }
  static bool decided(WaitingEnqueue& waiting) { return waiting.poll().has_value(); }

  QuietSegment s{few_slots(1024)};
};

TEST_F(TenantBounds, BP_T19_a_full_tenant_is_refused_and_the_others_are_not) {
  set({.tenant_max_depth = 2});
  put_for("a");
  put_for("a");
  const auto refused = s.producer.enqueue(spec_for("a"));
  ASSERT_EQ(refused.code(), Code::kQueueFull);
  EXPECT_EQ(refused.error().message,
            "Tenant 'a' has reached, in queue 'default', its depth bound (2)");
  EXPECT_EQ(refused.error().tenant, "a");
  EXPECT_EQ(refused.error().subject, "default");
  EXPECT_EQ(refused.error().depth, 2U);
  EXPECT_EQ(refused.error().bound, 2U);
  EXPECT_EQ(refused.error().unit, "jobs");
  EXPECT_EQ(refused.error().strategy, "reject");
  EXPECT_EQ(refused.error().retry_after_ms, 1000U);
  put_for("b");
  put_for("");
  put_for("");
  const auto nobodys = s.producer.enqueue(spec_of());
  ASSERT_EQ(nobodys.code(), Code::kQueueFull) << "jobs without a tenant are one";
  EXPECT_EQ(nobodys.error().tenant, "");
  EXPECT_EQ(s.queue().rejected_total, 2U);
  EXPECT_EQ(s.queue().depth, 5U);
}

TEST_F(TenantBounds, BP_T19_the_first_bound_that_is_reached_speaks) {
  set({.max_depth = 3, .tenant_max_depth = 2});
  put_for("a");
  put_for("a");
  put_for("b");
  EXPECT_EQ(s.producer.enqueue(spec_for("a")).error().tenant, "a");
  const auto by_queue = s.producer.enqueue(spec_for("b"));
  ASSERT_EQ(by_queue.code(), Code::kQueueFull);
  EXPECT_EQ(by_queue.error().tenant, std::nullopt);
  EXPECT_EQ(by_queue.error().bound, 3U);
  EXPECT_EQ(jobs_of("b"), 1U) << "who is refused by the queue is not charged";
  const std::uint64_t one = s.queue().size_bytes / 3;
  set({.max_depth = 0, .tenant_max_depth = 0, .tenant_max_size_bytes = 2 * one + 1});
  const auto by_bytes = s.producer.enqueue(spec_for("a"));
  ASSERT_EQ(by_bytes.code(), Code::kQueueFull);
  EXPECT_EQ(by_bytes.error().unit, "bytes");
  EXPECT_EQ(by_bytes.error().depth, 2 * one);
  EXPECT_EQ(by_bytes.error().message,
            "Tenant 'a' has reached, in queue 'default', its size bound (" +
                std::to_string(2 * one + 1) + " bytes)");
  put_for("b");
}

TEST_F(TenantBounds, BP_T19_a_tenant_may_have_its_own) {
  set({.tenant_max_depth = 1,
       .tenant_bounds =
           std::vector<TenantBound>{{"big", 3, {}}, {"any", 0, {}}, {"small", {}, 1}}});
  for (int i = 0; i < 3; ++i) put_for("big");
  EXPECT_EQ(put_code("big"), Code::kQueueFull);
  for (int i = 0; i < 9; ++i) put_for("any");
  EXPECT_EQ(s.producer.enqueue(spec_for("small")).error().unit, "bytes");
  put_for("other");
  EXPECT_EQ(put_code("other"), Code::kQueueFull);
  const QueueInfo queue = s.queue();
  ASSERT_EQ(queue.tenant_bounds.size(), 3U);
  EXPECT_EQ(queue.tenant_bounds[1].tenant, "big");
  EXPECT_EQ(queue.tenant_bounds[1].max_depth, 3U);
  EXPECT_EQ(queue.tenant_bounds[1].max_size_bytes, std::nullopt);
  set({.tenant_bounds = std::vector<TenantBound>{{"other", 2, {}}}});
  EXPECT_EQ(put_code("any"), Code::kQueueFull) << "bounds that are not listed end";
  put_for("other");
  EXPECT_EQ(s.queue().tenant_max_depth, 1U);
}

TEST_F(TenantBounds, BP_T19_settings_are_read_checked_and_printed) {
  const auto read = parse_queue_settings(
      R"({"backpressure":{"tenant_max_depth":4,"tenant_max_size_bytes":9,"tenant_bounds":{"a":{"max_depth":2},"":{"max_size_bytes":1}}}})");
  ASSERT_TRUE(read.ok()) << read.error().message;
  set(read.value());
  const auto again = parse_queue_settings(print_queue_policy(s.queue()));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->tenant_max_depth, 4U);
  EXPECT_EQ(again->tenant_max_size_bytes, 9U);
  ASSERT_EQ(again->tenant_bounds->size(), 2U);
  EXPECT_EQ(again->tenant_bounds->front().max_size_bytes, 1U);
  EXPECT_EQ(again->tenant_bounds->back().max_depth, 2U);
  for (const char* wrong :
       {R"("tenant_max_depth":-1)", R"("tenant_bounds":5)", R"("tenant_bounds":{"a":5})",
        R"("tenant_bounds":{"a":{"depth":5}})", R"("tenant_bounds":{"a":{"max_depth":-5}})"})
    EXPECT_EQ(parse_queue_settings(std::string(R"({"backpressure":{)") + wrong + "}}").code(),
              Code::kInvalid)
        << wrong;
  EXPECT_EQ(s.admin.set_queue("default", {.tenant_max_depth = 1ULL << 23}).error().subject,
            "tenant_max_depth");
  EXPECT_EQ(s.admin.set_queue("default", {.tenant_max_size_bytes = 1ULL << 40}).error().subject,
            "tenant_max_size_bytes");
  const std::vector<TenantBound> twice{{"a", 1, {}}, {"a", 2, {}}},
      long_name{{std::string(129, 'a'), 1, {}}};
  EXPECT_EQ(s.admin.set_queue("default", {.tenant_bounds = twice}).code(), Code::kInvalid);
  EXPECT_EQ(s.admin.set_queue("default", {.tenant_bounds = long_name}).code(), Code::kInvalid);
}

TEST_F(TenantBounds, BP_T19_every_way_out_gives_room_and_every_way_back_takes_it) {
  set({.tenant_max_depth = 2});
  put_for("a");
  const std::string second = put_for("a");
  ASSERT_NE(s.take(), "");
  put_for("a");  // a fetch gives room
  EXPECT_EQ(put_code("a"), Code::kQueueFull);
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());  // a return is not refused
  EXPECT_EQ(jobs_of("a"), 3U);
  EXPECT_TRUE(s.producer.cancel(second).ok());
  EXPECT_EQ(jobs_of("a"), 2U);
  EXPECT_EQ(put_code("a"), Code::kQueueFull);
  s.pass(kHour);  // the retry is due: it waits as before
  EXPECT_EQ(jobs_of("a"), 2U);
  EXPECT_EQ(s.drain().size(), 2U);
  EXPECT_EQ(charge_of("a"), 0U);
  JobSpec later = spec_for("a");
  later.scheduled_at_ms = s.now_ms() + kHour;
  later.expires_at_ms = s.now_ms() + kMinute;
  s.put(later);
  JobSpec pending = spec_for("a");
  pending.pending = true;
  s.put(pending);
  EXPECT_EQ(put_code("a"), Code::kQueueFull);
  s.pass(2 * kMinute);  // one expires
  put_for("a");
  EXPECT_EQ(put_code("a"), Code::kQueueFull);
}

TEST_F(TenantBounds, BP_T19_a_bound_that_is_set_counts_what_waits_already) {
  for (int i = 0; i < 5; ++i) put_for("a");
  JobSpec later = spec_for("a");
  later.scheduled_at_ms = s.now_ms() + kHour;
  s.put(later);
  put_for("b");
  ASSERT_NE(s.take(), "");  // at work: it does not count
  set({.tenant_max_depth = 2});
  EXPECT_EQ(jobs_of("a"), 5U);
  EXPECT_EQ(jobs_of("b"), 1U);
  EXPECT_EQ(put_code("a"), Code::kQueueFull);
  EXPECT_EQ(s.queue().depth, 6U) << "none is lost";
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  EXPECT_EQ(jobs_of("a"), 6U);
  set({.tenant_max_depth = 0});
  put_for("a");  // counts for nobody ...
  set({.tenant_max_depth = 7});
  EXPECT_EQ(jobs_of("a"), 7U);  // ... until tenants are bounded again
  EXPECT_EQ(put_code("a"), Code::kQueueFull);
  s.pass(kHour);
  EXPECT_EQ(s.drain().size(), 8U);
  EXPECT_EQ(charge_of("a"), 0U);
}

TEST_F(TenantBounds, BP_T19_a_fetch_beside_the_count_counts_once) {
  // At each access of the count, once, another worker takes the only job.
  QuietSegment few{few_slots(64)};
  Worker other = Worker::attach(few.segment, {}).value();
  engine::Store& store = few.store();
  const auto charged = [&store] {
    const std::uint32_t at =
        engine::find_account(store, engine::mix_key(0, engine::hash_tenant("a")));
    return at == engine::kNoIndex ? 0 : engine::account_charge(store, at);
  };
  int times = 0;
  for (bool over = false; !over; ++times) {
    few.put(spec_for("a"));
    Job taken;
    int seen = 0;
    {
      const AtAccess between([&](shm::Access, shm::Point, const void*) {
        if (seen++ == times) {
          EXPECT_TRUE(other.try_fetch(taken));
        }
      });
      ASSERT_TRUE(few.admin.set_queue("default", {.tenant_max_depth = 2}).ok());
    }
    over = seen <= times;
    if (!over) {
      EXPECT_EQ(charged(), 0U) << "access " << times;
      ASSERT_TRUE(other.ack(taken).ok());
      few.put(spec_for("a"));
    }
    EXPECT_EQ(charged() >> 40, 1U) << "access " << times;
    EXPECT_EQ(few.drain().size(), 1U);
    ASSERT_TRUE(few.admin.set_queue("default", {.tenant_max_depth = 0}).ok());
  }
  EXPECT_GT(times, 64);
}

/// A gatherer and a worker that waited for each other would keep a producer from its account.
TEST_F(TenantBounds, BP_T19_a_gatherer_that_waits_for_a_job_lets_others_open_accounts) {
  put_for("a");
  Job job;
  ASSERT_TRUE(s.worker.try_fetch(job).ok());
  Producer other = Producer::attach(s.segment).value();
  std::atomic<bool> settling{false}, seated{false}, waiting{false}, done{false};
  std::thread giving_back([&] {
    const AtAccess once([&](shm::Access access, shm::Point point, const void*) {
      if (access != shm::Access::kWritten || point != shm::Point::kSlotSettling) return;
      shm::thread_hook = nullptr;
      settling = true;
      while (!waiting) std::this_thread::yield();
      // If the third must wait for this one, it loses its patience first.
      const auto end = std::chrono::steady_clock::now() + 300ms;
      while (!done && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    });
    EXPECT_TRUE(s.worker.requeue(job).ok());
  });
  while (!settling) std::this_thread::yield();
  std::thread third([&] {
    while (!seated) std::this_thread::yield();
    {
      const AtAccess once([&](shm::Access, shm::Point point, const void*) {
        if (point != shm::Point::kAccountSeatTaken) return;
        shm::thread_hook = nullptr;
        waiting = true;
      });
      const auto put = other.enqueue(spec_for("b"));
      EXPECT_TRUE(put.ok()) << put.error().message;
      done = true;
    }
  });
  {
    const AtAccess once([&](shm::Access access, shm::Point point, const void*) {
      if (access != shm::Access::kWritten || point != shm::Point::kAccountSeatTaken) return;
      shm::thread_hook = nullptr;
      seated = true;
      while (!waiting) std::this_thread::yield();
    });
    set({.tenant_max_depth = 8});
  }
  giving_back.join();
  third.join();
  EXPECT_EQ(jobs_of("a"), 1U);
  EXPECT_EQ(jobs_of("b"), 1U);
}

TEST_F(TenantBounds, BP_T19_a_batch_is_charged_to_each_of_its_tenants_or_to_none) {
  set({.tenant_max_depth = 2});
  put_for("b");
  const std::vector<JobSpec> fits{spec_for("a"), spec_for("b"), spec_for("a")};
  EXPECT_TRUE(s.producer.enqueue_batch(fits).ok());
  EXPECT_EQ(jobs_of("a"), 2U);
  EXPECT_EQ(jobs_of("b"), 2U);
  const std::vector<JobSpec> not_all{spec_for("c"), spec_for("b"), spec_for("c")};
  const auto refused = s.producer.enqueue_batch(not_all);
  ASSERT_EQ(refused.code(), Code::kQueueFull);
  EXPECT_EQ(refused.error().tenant, "b");
  EXPECT_EQ(jobs_of("c"), 0U);
  EXPECT_EQ(s.queue().rejected_total, 3U);
  EXPECT_EQ(s.drain().size(), 4U);
}

TEST_F(TenantBounds, BP_T19_dropping_takes_the_oldest_of_that_tenant) {
  set({.strategy = BackpressureStrategy::kDropOldest, .tenant_max_depth = 2});
  const std::string others = put_for("b", 3), oldest = put_for("a", 2), kept = put_for("a");
  put_for("a");
  EXPECT_EQ(s.state_of(oldest), State::kDiscarded);
  EXPECT_EQ(s.state_of(others), State::kAvailable);
  EXPECT_EQ(s.state_of(kept), State::kAvailable);
  EXPECT_EQ(jobs_of("a"), 2U);
  const std::vector<JobSpec> batch{spec_for("b"), spec_for("b"), spec_for("a")};
  EXPECT_TRUE(s.producer.enqueue_batch(batch).ok());
  EXPECT_EQ(s.state_of(others), State::kDiscarded);
  EXPECT_EQ(s.state_of(kept), State::kDiscarded);
  EXPECT_EQ(s.queue().dropped_total, 3U);
  const std::vector<JobSpec> never(3, spec_for("a"));
  EXPECT_EQ(s.producer.enqueue_batch(never).code(), Code::kQueueFull);
  EXPECT_EQ(jobs_of("a"), 2U);
  EXPECT_EQ(s.queue().depth, 4U);
  // The queue's own bound drops the oldest of all, and its tenant has room again.
  set({.max_depth = 4});
  put_for("c");
  EXPECT_EQ(jobs_of("a") + jobs_of("b") + jobs_of("c"), 4U);
  EXPECT_EQ(s.queue().depth, 4U);
}

TEST_F(TenantBounds,
       BP_T19_who_waits_for_its_tenant_holds_up_no_other_and_nobody_of_its_own_passes) {
  set({.max_depth = 4, .strategy = BackpressureStrategy::kBlock, .tenant_max_depth = 2});
  put_for("a");
  const std::string second = put_for("a");
  WaitingEnqueue first = begin("a"), after = begin("a"), of_b = begin("b");
  EXPECT_FALSE(decided(first));
  EXPECT_FALSE(decided(after));
  EXPECT_TRUE(decided(of_b)) << "it passes";
  put_for("b");  // and so does who does not wait
  WaitingEnqueue of_c = begin("c");
  EXPECT_FALSE(decided(of_c)) << "the queue itself is full";
  EXPECT_TRUE(s.producer.cancel(second).ok());
  EXPECT_EQ(put_code("a"), Code::kQueueFull) << "others came first";
  EXPECT_FALSE(decided(after));
  EXPECT_FALSE(decided(of_c)) << "the first of tenant a has room now, and came before";
  EXPECT_TRUE(decided(first));
  for (int i = 0; i < 10 && !(decided(after) && decided(of_c)); ++i) s.drain();
  EXPECT_TRUE(decided(after) && decided(of_c));
  s.drain();
  EXPECT_EQ(s.queue().waiting, 0U);
  EXPECT_EQ(charge_of("a"), 0U);
}

TEST_F(TenantBounds, BP_T19_accounts_go_from_tenant_to_tenant) {
  set({.tenant_max_depth = 1});
  for (int i = 0; i < 500; ++i) {
    const std::string tenant = "t" + std::to_string(i);
    put_for(tenant);
    EXPECT_EQ(put_code(tenant), Code::kQueueFull);
    ASSERT_EQ(s.drain().size(), 1U);
  }
  std::uint64_t taken = 0;
  for (int i = 0; i < 500; ++i) {
    const auto put = s.producer.enqueue(spec_for("w" + std::to_string(i)));
    if (put.ok()) ++taken;
    if (!put.ok()) {
      EXPECT_EQ(put.code(), Code::kSegmentFull);
      EXPECT_EQ(put.error().subject, "accounts");
    }
  }
  EXPECT_EQ(taken, s.store().accounts.size());
  EXPECT_EQ(s.drain().size(), taken);
  put_for("again");
}

TEST_F(TenantBounds, BP_T19_bounds_hold_in_fair_queues_and_for_imports_and_dead_letters) {
  set({.tenant_fairness = TenantFairness{}, .tenant_max_depth = 2});
  put_for("a");
  JobSpec dies = spec_for("a");
  dies.retry.max_attempts = 1;
  dies.retry.dead_letter = true;
  const std::string dead = s.put(dies);
  EXPECT_EQ(put_code("a"), Code::kQueueFull);
  put_for("b");
  while (s.take() != dead) ASSERT_TRUE(s.worker.ack(s.job).ok());
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  s.drain();
  EXPECT_EQ(charge_of("a"), 0U);
  put_for("a");
  put_for("a");
  EXPECT_TRUE(s.admin.retry_dead(dead).ok()) << "what was accepted once is not refused";
  EXPECT_EQ(jobs_of("a"), 3U);
  EXPECT_EQ(s.drain().size(), 3U);
  EXPECT_EQ(charge_of("a"), 0U);
}

TEST_F(TenantBounds, BP_T19_many_producers_at_once_never_pass_a_bound) {
  constexpr std::uint64_t kBound = 7;
  set({.tenant_max_depth = kBound});
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> most{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      Producer own = Producer::attach(s.segment).value();
      Worker worker = Worker::attach(s.segment, {}).value();
      Job job;
      for (int i = 0; i < 3000; ++i) {
        const std::string tenant = (i + t) % 2 == 0 ? "a" : "b";
        (void)own.enqueue(spec_for(tenant));
        const std::uint64_t now = std::max(jobs_of("a"), jobs_of("b"));
        for (std::uint64_t before = most.load();
             now > before && !most.compare_exchange_weak(before, now);) {}
        if (i % 3 == 0 && worker.try_fetch(job)) {
          EXPECT_TRUE(worker.ack(job).ok());
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(jobs_of("a"), kBound);
  EXPECT_LE(jobs_of("b"), kBound);
  EXPECT_EQ(jobs_of("a") + jobs_of("b"), s.queue().depth);
  EXPECT_EQ(most.load(), kBound);
}

}  // namespace
}  // namespace ojs_shm::test
