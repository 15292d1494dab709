// SPDX-License-Identifier: Apache-2.0
//
// One handle that works for many clients: fetches by request, jobs ended by their id.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <ojs_shm/proxy.hpp>

#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

struct ForClients : testing::Test {
  QuietSegment s;
  Proxy proxy = Proxy::attach(s.segment).value();

  std::vector<std::string> fetch(const FetchRequest& request) {
    std::vector<std::string> ids;
    const auto jobs = proxy.fetch(request);
    EXPECT_TRUE(jobs.ok());
    if (!jobs) return ids;
    for (const JobInfo& job : *jobs) {
      EXPECT_EQ(job.state, State::kActive);
      ids.push_back(job.id);
    }
    return ids;
  }
};

TEST_F(ForClients, each_fetch_says_what_it_wants) {
  const std::string a = s.put(2, "a"), b = s.put(0, "b"), c = s.put(1, "a");
  EXPECT_EQ(fetch({.queues = {"a", "b"}}), std::vector<std::string>{c});
  EXPECT_EQ(fetch({.queues = {"b"}}), std::vector<std::string>{b});
  EXPECT_EQ(fetch({.queues = {"b", "a"}, .count = 5}), std::vector<std::string>{a});
  EXPECT_TRUE(fetch({.queues = {"none"}}).empty());
  EXPECT_EQ(proxy.fetch({.queues = {}}).code(), Code::kInvalid);
  EXPECT_EQ(proxy.fetch({.pool = "none"}).code(), Code::kNotFound);
}

TEST_F(ForClients, FS_T05_a_worker_without_a_word_fetches_for_the_pool_it_is_registered_in) {
  const std::string a = s.put(2, "a"), b = s.put(2, "b");
  ASSERT_TRUE(s.admin.set_pool("p", {.queues = {"a"}}).ok());
  ASSERT_TRUE(proxy.report({.id = "w", .pool = "p", .registers = true}).ok());
  EXPECT_EQ(fetch({.queues = {"b"}, .count = 5, .worker = "w"}), std::vector<std::string>{a});
  EXPECT_EQ(fetch({.queues = {"b"}, .count = 5, .worker = "another"}), std::vector<std::string>{b});
  const std::string c = s.put(2, "b");
  ASSERT_TRUE(s.admin.remove_pool("p").ok());
  EXPECT_EQ(fetch({.queues = {"b"}, .worker = "w"}), std::vector<std::string>{c}) << "it is gone";
}

bool readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}
void read_all(int fd) {
  eventfd_t count = 0;
  ::eventfd_read(fd, &count);
}

TEST_F(ForClients, a_descriptor_says_when_there_may_be_jobs_in_the_queues_that_are_awaited) {
  s.put(2, "there"), s.put(2, "other");
  const int fd = proxy.await_jobs({"there", "late"}).value();
  EXPECT_TRUE(eventually([&] { return readable(fd); })) << "a job that is there already";
  read_all(fd);
  EXPECT_TRUE(eventually([&] { return readable(fd); })) << "and still is";
  EXPECT_EQ(fetch({.queues = {"there"}}).size(), 1U);
  read_all(fd);  // told before the fetch, perhaps
  s.put(2, "late");
  EXPECT_TRUE(eventually([&] { return readable(fd); })) << "of a queue made by its first job";
  EXPECT_EQ(fetch({.queues = {"late"}}).size(), 1U);
}

TEST_F(ForClients, it_says_so_of_a_pool_too_whose_queues_change) {
  s.put(2, "other"), s.put(2, "there");
  ASSERT_TRUE(s.admin.set_pool("p", {.queues = {"there"}}).ok());
  EXPECT_EQ(fetch({.pool = "p"}).size(), 1U);
  const int fd = proxy.await_jobs({}, {"p", "none"}).value();
  const shm::Word& sleepers = s.store().queue(s.store().find_queue("there")).waiters[0];
  EXPECT_TRUE(eventually([&] { return sleepers.load() != 0; }));
  EXPECT_FALSE(readable(fd));
  ASSERT_TRUE(s.admin.set_pool("p", {.queues = {"other"}}).ok());
  EXPECT_TRUE(eventually([&] { return readable(fd); }));
}

TEST_F(ForClients, one_that_rests_is_in_no_ones_way) {
  s.put(2, "a");
  const shm::Word& sleepers = s.store().queue(s.store().find_queue("a")).waiters[0];
  EXPECT_EQ(fetch({.queues = {"a"}}).size(), 1U);
  const int fd = proxy.await_jobs({"a"}).value();
  EXPECT_TRUE(eventually([&] { return sleepers.load() != 0; }));
  EXPECT_EQ(proxy.await_jobs({}).value(), fd);
  EXPECT_TRUE(eventually([&] { return sleepers.load() == 0; }));
  s.put(2, "a");
  EXPECT_EQ(proxy.await_jobs({"a"}).value(), fd);
  EXPECT_TRUE(eventually([&] { return readable(fd); }));
  EXPECT_EQ(proxy.await_jobs({"A"}).code(), Code::kInvalid);
}

/// A worker sleeps beside it, is passed over, and is called when the proxy looks elsewhere.
TEST_F(ForClients, what_was_told_and_is_not_fetched_goes_to_another_sleeper) {
  s.put(2, "a");
  EXPECT_EQ(fetch({.queues = {"a"}}).size(), 1U);
  const std::uint32_t queue = s.store().find_queue("a");
  shm::Word& sleepers = s.store().queue(queue).waiters[0];
  const int fd = proxy.await_jobs({"a"}).value();
  EXPECT_TRUE(eventually([&] { return sleepers.load() != 0; }));
  s.put(2, "a");
  EXPECT_TRUE(eventually([&] { return readable(fd); }));
  const std::uint64_t sleeper = 1ULL << 30;
  sleepers.fetch_or(sleeper, shm::Point::kNone);
  EXPECT_EQ(proxy.await_jobs({}).value(), fd);
  EXPECT_TRUE(eventually([&] { return (sleepers.load() & sleeper) == 0; })) << "it is called";
}

TEST_F(ForClients, weights_hold_over_fetches_of_one_job_each) {
  for (int i = 0; i < 30; ++i) s.put(2, "a"), s.put(2, "b");
  int of_a = 0;
  for (int i = 0; i < 24; ++i) {
    const auto jobs = proxy.fetch({.queues = {"a", "b"}, .weights = {3, 1}});
    ASSERT_EQ(jobs->size(), 1U);
    of_a += jobs->front().queue == "a" ? 1 : 0;
  }
  EXPECT_EQ(of_a, 18);
}

/// Each fetch by another handle, as of a process that fetches once and goes; some are native
/// workers.
TEST_F(ForClients, PRI_S5_FS_T05_weights_hold_over_workers_that_fetch_once_and_go) {
  for (int i = 0; i < 60; ++i) s.put(2, "a"), s.put(2, "b"), s.put(2, "c");
  std::map<std::string, int> served;
  int since_c = 0;
  for (int i = 0; i < 48; ++i) {
    std::string queue;
    if (i % 2 == 0) {
      Proxy once = Proxy::attach(s.segment).value();
      queue = once.fetch({.queues = {"a", "b", "c"}, .weights = {5, 2, 1}})->at(0).queue;
    } else {
      Worker once = Worker::attach(s.segment, {.queues = {"a", "b", "c"},
                                               .strategy = QueueStrategy::kWeighted,
                                               .weights = {5, 2, 1}})
                        .value();
      Job job;
      ASSERT_TRUE(once.try_fetch(job).ok());
      queue = job.queue();
      ASSERT_TRUE(once.ack(job).ok());
    }
    ++served[queue];
    since_c = queue == "c" ? 0 : since_c + 1;
    EXPECT_LE(since_c, 7) << "PRI-S6";
  }
  EXPECT_EQ(served, (std::map<std::string, int>{{"a", 30}, {"b", 12}, {"c", 6}}));
}

/// Other queues, or the same in another order or with other weights, are another cycle.
TEST_F(ForClients, other_shares_have_turns_of_their_own) {
  for (int i = 0; i < 40; ++i) s.put(2, "a"), s.put(2, "b");
  const auto first_of = [&](std::vector<std::string> queues, std::vector<std::uint32_t> weights) {
    return proxy.fetch({.queues = std::move(queues), .weights = std::move(weights)})->at(0).queue;
  };
  EXPECT_EQ(first_of({"a", "b"}, {1, 1}), "a");
  EXPECT_EQ(first_of({"a", "b"}, {2, 1}), "a");
  EXPECT_EQ(first_of({"b", "a"}, {1, 1}), "b");
  EXPECT_EQ(first_of({"a", "b"}, {1, 1}), "b");
}

TEST_F(ForClients, where_no_place_is_left_each_handle_keeps_its_turns) {
  for (std::uint32_t i = 0; i < engine::kSharedTurns; ++i)
    s.segment.attachment()->store().shared_turns[i].word.store(engine::SharedTurn::Of::put(99),
                                                               shm::Point::kNone);
  for (int i = 0; i < 30; ++i) s.put(2, "a"), s.put(2, "b");
  std::map<std::string, int> served;
  for (int i = 0; i < 12; ++i)
    ++served[proxy.fetch({.queues = {"a", "b"}, .weights = {3, 1}})->at(0).queue];
  EXPECT_EQ(served, (std::map<std::string, int>{{"a", 9}, {"b", 3}}));
}

TEST_F(ForClients, a_pool_chooses_for_those_who_name_it) {
  ASSERT_TRUE(s.admin.set_pool("web", {.queues = {"b"}}).ok());
  const std::string a = s.put(2, "a"), b = s.put(2, "b");
  EXPECT_EQ(fetch({.queues = {"a"}, .pool = "web"}), std::vector<std::string>{b});
  EXPECT_EQ(fetch({.queues = {"a"}}), std::vector<std::string>{a});
}

TEST_F(ForClients, jobs_end_by_their_id_and_the_attempt_that_is_meant) {
  const std::string id = s.put();
  EXPECT_EQ(proxy.ack(id, 0).error().subject, "available");
  const std::uint64_t first = proxy.fetch({})->front().fence;
  EXPECT_EQ(proxy.ack(id, first + 8).code(), Code::kLost);
  ASSERT_TRUE(proxy.requeue(id, first).ok());
  EXPECT_EQ(s.get(id).attempt, 0) << "not counted";
  const std::uint64_t second = proxy.fetch({})->front().fence;
  EXPECT_EQ(proxy.ack(id, first).code(), Code::kLost) << "another attempt runs";
  ASSERT_TRUE(proxy.progress(id, second, 0.5).ok());
  EXPECT_EQ(s.get(id).progress, 0.5);
  ASSERT_TRUE(proxy.ack(id, second, "7").ok());
  EXPECT_EQ(s.get(id).result, "7");
  EXPECT_EQ(proxy.ack(id, 0).code(), Code::kWrongState);
  EXPECT_EQ(proxy.ack("019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d", 0).code(), Code::kNotFound);
}

TEST_F(ForClients, another_process_may_end_what_a_native_worker_holds) {
  const std::string id = s.put();
  ASSERT_EQ(s.take(), id);
  const auto outcome = proxy.nack(id, s.job.fence(), {.code = "boom", .retryable = false});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->state, State::kDiscarded);
  EXPECT_EQ(s.worker.ack(s.job).code(), Code::kLost);
}

TEST_F(ForClients, a_heartbeat_moves_the_end_of_the_lease) {
  const std::string id = s.put();
  const auto job = proxy.fetch({.lease_ms = 60'000});
  ASSERT_EQ(job->size(), 1U);
  ASSERT_TRUE(proxy.heartbeat(id, 0, 10 * kHour).ok());
  s.pass(kHour);
  EXPECT_EQ(s.get(id).state, State::kActive);
  s.pass(10 * kHour);
  EXPECT_EQ(s.get(id).state, State::kAvailable);
}

class ForTenants : public ForClients {
 protected:
  std::string put(std::string_view tenant, std::int64_t priority,
                  std::string_view queue = "default") {
    const std::string extra = R"({"meta":{"tenant_id":")" + std::string(tenant) + R"("}})";
    JobSpec spec = spec_of(priority, queue);
    spec.extra = extra;
    return s.put(spec);
  }
};

TEST_F(ForTenants, PRI_004_jobs_of_another_tenant_in_front_are_passed_over) {
  const std::string others = put("b", 0), low = put("a", 5), high = put("a", 1), next = put("a", 1);
  for (int further = 0; further < 4; ++further) put("b", 0);
  EXPECT_EQ(fetch({.count = 2, .tenant = "a"}), (std::vector<std::string>{high, next}));
  EXPECT_EQ(fetch({.count = 9, .tenant = "a"}), std::vector<std::string>{low});
  EXPECT_TRUE(fetch({.tenant = "a"}).empty());
  EXPECT_TRUE(fetch({.tenant = "c"}).empty());
  EXPECT_EQ(s.get(others).attempt, 0);
  EXPECT_EQ(fetch({.tenant = "b"}), std::vector<std::string>{others});
  EXPECT_EQ(s.queue().depth, 4U);
}

TEST_F(ForTenants,
       a_tenants_jobs_wait_in_a_paused_queue_and_come_from_the_first_queue_that_has_any) {
  const std::string second = put("a", 0, "second"), first = put("a", 9, "first");
  put("b", 0, "first");
  const FetchRequest both{.queues = {"first", "second"}, .tenant = "a"};
  ASSERT_TRUE(s.admin.set_queue("first", {.paused = true}).ok());
  EXPECT_EQ(fetch(both), std::vector<std::string>{second});
  EXPECT_TRUE(fetch(both).empty());
  ASSERT_TRUE(s.admin.set_queue("first", {.paused = false}).ok());
  EXPECT_EQ(fetch(both), std::vector<std::string>{first});
}

TEST_F(ForTenants, a_tenant_of_a_shared_queue_is_served_out_of_turn) {
  ASSERT_TRUE(
      s.admin.set_queue("default", *parse_queue_settings(R"({"tenant_fairness":{}})")).ok());
  const std::string b = put("b", 2), first = put("a", 2), second = put("a", 2);
  EXPECT_EQ(fetch({.count = 2, .tenant = "a"}), (std::vector<std::string>{first, second}));
  EXPECT_EQ(s.drain(), std::vector<std::string>{b});
}

TEST_F(ForTenants, an_expired_job_is_passed_over) {
  JobSpec spec = spec_of(0);
  spec.extra = R"({"meta":{"tenant_id":"a"}})";
  spec.expires_at_ms = s.now_ms() + kHour;
  s.put(spec);
  const std::string lasting = put("a", 9);
  s.move_clock(2 * kHour);
  EXPECT_EQ(fetch({.tenant = "a"}), std::vector<std::string>{lasting});
}

TEST_F(ForTenants, PRI_004_a_job_that_a_limit_holds_back_is_passed_over) {
  RateLimit one;
  one.concurrency = 1;
  const JobLimit limit{"key", one};
  JobSpec spec = spec_of(0);
  spec.extra = R"({"meta":{"tenant_id":"a"}})";
  spec.limit = &limit;
  const std::string first = s.put(spec), held_back = s.put(spec), low = put("a", 9),
                    last = put("a", 9);
  EXPECT_EQ(fetch({.count = 2, .tenant = "a"}), (std::vector<std::string>{first, low}));
  EXPECT_EQ(fetch({.tenant = "a"}), std::vector<std::string>{last}) << "it stands in no line now";
  ASSERT_TRUE(proxy.ack(first, 0).ok());
  EXPECT_EQ(fetch({.tenant = "a"}), std::vector<std::string>{held_back});
}

/// A process that fetches what waits for its clients, hands over the first job and dies.
void serve_and_die(const QuietSegment& s) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto segment = Segment::attach(s.where());
    auto served = segment ? Proxy::attach(*segment) : segment.error();
    if (!served) ::_exit(2);
    const auto jobs = served->fetch({.count = 9, .held = true});
    if (!jobs || jobs->size() < 2) ::_exit(3);
    ::_exit(served->hand_over(jobs->front().id, jobs->front().fence).ok() ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ForClients, FS_T02_what_no_client_got_when_its_server_died_comes_back_uncounted) {
  const std::string got = s.put(), first = s.put(), second = s.put();
  serve_and_die(s);
  ASSERT_EQ(s.segment.attachment()->repair_the_dead(), 1U);
  const std::string behind = s.put();
  EXPECT_EQ(s.get(got).state, State::kActive) << "it is its lease's";
  for (const std::string& id : {first, second}) {
    EXPECT_EQ(s.get(id).state, State::kAvailable);
    EXPECT_EQ(s.get(id).attempt, 0);
    EXPECT_TRUE(s.get(id).errors.empty());
  }
  EXPECT_EQ(fetch({.count = 9}), (std::vector<std::string>{first, second, behind}));
  EXPECT_TRUE(proxy.ack(got, s.get(got).fence).ok());
}

TEST_F(ForClients, a_hand_over_changes_nothing_that_the_client_was_told) {
  const std::string id = s.put();
  const JobInfo job = proxy.fetch({.held = true})->front();
  Proxy other = Proxy::attach(s.segment).value();
  ASSERT_TRUE(other.heartbeat(id, job.fence).ok()) << "the client may be faster than its server";
  ASSERT_TRUE(proxy.hand_over(id, job.fence).ok());
  EXPECT_EQ(proxy.hand_over(id, job.fence).code(), Code::kLost);
  EXPECT_EQ(s.get(id).fence, job.fence);
  ASSERT_TRUE(other.progress(id, job.fence, 0.5).ok());
  ASSERT_TRUE(other.heartbeat(id, job.fence).ok());
  ASSERT_TRUE(other.ack(id, job.fence).ok());
  EXPECT_EQ(proxy.hand_over(id, job.fence).code(), Code::kWrongState);
}

/// The hand-over comes between the other's look at the job and its write.
TEST_F(ForClients, a_client_that_answers_during_its_hand_over_is_heard) {
  Proxy other = Proxy::attach(s.segment).value();
  for (const bool nack : {false, true}) {
    const std::string id = s.put();
    const JobInfo job = proxy.fetch({.held = true})->front();
    bool handed_over = false;
    const AtAccess before_its_write([&](shm::Access access, shm::Point point, const void*) {
      if (handed_over || access != shm::Access::kRmw || point != shm::Point::kSlotSettling) return;
      handed_over = true;
      EXPECT_TRUE(proxy.hand_over(id, job.fence).ok());
    });
    if (nack)
      EXPECT_TRUE(other.nack(id, job.fence, {.code = "boom"}).ok());
    else
      EXPECT_TRUE(other.ack(id, job.fence).ok());
    EXPECT_TRUE(handed_over);
    EXPECT_NE(s.get(id).state, State::kActive);
  }
}

TEST_F(ForClients, a_server_that_closes_gives_back_what_no_client_got) {
  const std::string id = s.put();
  {
    Proxy served = Proxy::attach(s.segment).value();
    ASSERT_EQ(served.fetch({.held = true})->size(), 1U);
  }
  EXPECT_EQ(s.get(id).state, State::kAvailable);
  EXPECT_EQ(s.get(id).attempt, 0);
}

/// Whose lease ends, or who is a worker of the segment's own, is counted as ever.
TEST_F(ForClients, a_job_that_reached_its_worker_is_counted_when_that_dies) {
  const std::string id = s.put();
  ASSERT_EQ(proxy.fetch({.held = true})->size(), 1U);
  ASSERT_TRUE(proxy.requeue(id, 0).ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto segment = Segment::attach(s.where());
    auto worker = segment ? Worker::attach(*segment, {}) : segment.error();
    Job job;
    ::_exit(worker && worker->try_fetch(job).ok() ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(s.segment.attachment()->repair_the_dead(), 1U);
  EXPECT_EQ(s.get(id).attempt, 1);
  EXPECT_EQ(s.get(id).errors.at(0).code, "holder_died");
}

TEST_F(ForClients, FS_T04_a_tenants_jobs_come_from_the_queues_in_turns_as_well) {
  JobSpec spec = spec_of();
  spec.tenant = "t";
  for (const char* queue : {"a", "b"})
    for (int i = 0; i < 20; ++i) spec.queue = queue, s.put(spec);
  std::map<std::string, int> from;
  FetchRequest request{.queues = {"a", "b"}, .weights = {3, 1}};
  request.tenant = "t";
  for (int i = 0; i < 16; ++i) ++from[proxy.fetch(request)->at(0).queue];
  EXPECT_EQ(from["a"], 12);
  EXPECT_EQ(from["b"], 4);
  ASSERT_TRUE(s.admin.set_pool("p", {.queues = {"a", "b"}}).ok());
  request = {.pool = "p"};
  request.tenant = "t";
  from.clear();
  for (int i = 0; i < 8; ++i) ++from[proxy.fetch(request)->at(0).queue];
  EXPECT_EQ(from["a"], 4);
  EXPECT_EQ(from["b"], 4);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(proxy.fetch(request)->size(), 1U);
  EXPECT_TRUE(proxy.fetch(request)->empty());
}

TEST_F(ForClients, FS_T09_a_worker_fetches_for_no_pool_beside_its_own) {
  ASSERT_TRUE(s.admin.set_pool("one", {.queues = {"a"}}).ok());
  ASSERT_TRUE(s.admin.set_pool("two", {.queues = {"b"}, .isolated = true}).ok());
  const std::string a = s.put(2, "a"), b = s.put(2, "b");
  ASSERT_TRUE(proxy.report({.id = "w", .pool = "one", .registers = true}).ok());
  const auto refused = proxy.fetch({.pool = "two", .worker = "w"});
  EXPECT_EQ(refused.code(), Code::kInUse);
  EXPECT_EQ(fetch({.pool = "one", .worker = "w"}), std::vector{a});
  EXPECT_EQ(fetch({.pool = "two", .worker = "another"}), std::vector{b});
}

}  // namespace
}  // namespace ojs_shm::test
