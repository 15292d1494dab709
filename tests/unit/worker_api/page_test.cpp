// SPDX-License-Identifier: Apache-2.0
// Observer::page() beside Observer::list(): the same jobs, sorted, cut into pages, whatever is
// asked.
#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <tuple>

#include <ojs_shm/unique.hpp>

#include "tests/support/seed.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using Ids = std::vector<std::string>;

Ids ids_of(const std::vector<JobInfo>& jobs) {
  Ids ids;
  for (const JobInfo& job : jobs) ids.push_back(job.id);
  return ids;
}

/// Jobs of several queues, types, tenants, priorities and states, with long and short texts.
void fill(QuietSegment& s, Seeded& random) {
  const std::string types[] = {"mail.send", "mail.drop", "report", "long." + std::string(200, 'x')};
  const std::string tenants[] = {"", "acme", "zeta"};
  const std::string texts[] = {"[1]", "[\"" + std::string(400, 'y') + "\"]"};
  for (int i = 0; i < 120; ++i) {
    JobSpec spec = spec_of(random.between(0, 5), random.coin() ? "default" : "other");
    spec.type = types[random.between(0, 3)];
    spec.tenant = tenants[random.between(0, 2)];
    spec.args = texts[random.between(0, 1)];
    spec.retry.max_attempts = 1;
    spec.retry.dead_letter = random.coin();
    const std::string extra =
        spec.tenant.empty() ? "" : R"({"meta":{"tenant_id":")" + std::string(spec.tenant) + "\"}}";
    spec.extra = extra;
    if (random.between(0, 4) == 0)
      spec.scheduled_at_ms = s.now_ms() + static_cast<std::uint64_t>(random.between(1, 9)) * kHour;
    spec.pending = spec.scheduled_at_ms == 0 && random.between(0, 9) == 0;
    const std::string id = s.put(spec);
    if (random.between(0, 7) == 0) {
      EXPECT_TRUE(s.producer.cancel(id).ok());
    }
    if (random.between(0, 3) == 0) s.move_clock(static_cast<std::uint64_t>(random.between(0, 500)));
    if (random.between(0, 3) == 0 && s.worker.try_fetch(s.job)) {
      EXPECT_TRUE(random.coin() ? s.worker.ack(s.job).ok()
                                : s.worker.nack(s.job, failure(false)).ok());
    }
  }
}

JobPageRequest any_request(Seeded& random, const std::vector<JobInfo>& all) {
  JobPageRequest request;
  const auto some = [&] { return all[static_cast<std::size_t>(random.between(0, 119))]; };
  if (random.coin()) request.filter.queue = "other";
  if (random.between(0, 2) == 0) request.filter.state = static_cast<State>(random.between(0, 7));
  if (random.between(0, 3) == 0) request.filter.waiting = true;
  if (random.between(0, 5) == 0) request.filter.dead_letter = true;
  if (random.between(0, 2) == 0) request.filter.tenant = random.coin() ? "acme" : "";
  if (random.between(0, 3) == 0) request.filter.priority = random.between(0, 5);
  if (random.between(0, 2) == 0) request.filter.type = some().type;
  if (random.between(0, 2) == 0) request.type_prefix = random.coin() ? "mail." : "long.";
  if (random.between(0, 3) == 0) request.filter.created_before_ms = some().created_at_ms;
  if (random.between(0, 3) == 0) request.created_from_ms = some().created_at_ms;
  if (random.between(0, 3) == 0) request.filter.ended_from_ms = some().created_at_ms;
  if (random.between(0, 3) == 0) request.filter.ended_before_ms = some().created_at_ms;
  if (random.between(0, 5) == 0) request.filter.error_type = random.coin() ? "boom" : "none";
  request.order = static_cast<JobOrder>(random.between(0, 2));
  request.falls = random.coin();
  request.offset = static_cast<std::size_t>(random.between(0, 30));
  request.limit = static_cast<std::size_t>(random.between(1, 30));
  if (request.order == JobOrder::kCreated && random.coin()) {
    const JobInfo behind = some();
    request.behind = {behind.created_at_ms, behind.id};
  }
  return request;
}

/// The same by a list of everything.
JobPage expected(const QuietSegment& s, const JobPageRequest& request) {
  std::vector<JobInfo> jobs = s.observer.list(request.filter);
  std::erase_if(jobs, [&](const JobInfo& job) {
    return job.created_at_ms < request.created_from_ms ||
           !job.type.starts_with(request.type_prefix);
  });
  const auto key = [&](const JobInfo& job) {
    const std::int64_t by = request.order == JobOrder::kScheduled
                                ? static_cast<std::int64_t>(job.scheduled_at_ms)
                            : request.order == JobOrder::kPriority ? job.priority
                                                                   : 0;
    return std::tuple(by, job.created_at_ms, job.id);
  };
  std::ranges::sort(jobs, {}, key);
  if (request.falls) std::ranges::reverse(jobs);
  JobPage page;
  page.total = jobs.size();
  if (request.behind) {
    const std::tuple at(std::int64_t{0}, request.behind->first, request.behind->second);
    std::erase_if(
        jobs, [&](const JobInfo& job) { return request.falls ? key(job) >= at : key(job) <= at; });
  }
  jobs.erase(jobs.begin(),
             jobs.begin() + static_cast<std::ptrdiff_t>(std::min(jobs.size(), request.offset)));
  page.more = jobs.size() > request.limit;
  jobs.resize(std::min(jobs.size(), request.limit));
  page.jobs = std::move(jobs);
  return page;
}

TEST(Page, has_what_a_list_of_everything_has_there) {
  Seeded random;
  QuietSegment s;
  fill(s, random);
  const std::vector<JobInfo> all = s.observer.list({});
  ASSERT_EQ(all.size(), 120U);
  std::size_t found = 0, texts = 0;
  for (int i = 0; i < 3000; ++i) {
    const JobPageRequest request = any_request(random, all);
    const JobPage page = s.observer.page(request), wanted = expected(s, request);
    ASSERT_EQ(ids_of(page.jobs), ids_of(wanted.jobs)) << "request " << i;
    ASSERT_EQ(page.total, wanted.total) << "request " << i;
    ASSERT_EQ(page.more, wanted.more) << "request " << i;
    for (std::size_t at = 0; at < page.jobs.size(); ++at) {
      ASSERT_EQ(page.jobs[at].args, wanted.jobs[at].args);
      texts += page.jobs[at].args.size() > 100 ? 1 : 0;
    }
    found += page.jobs.size();
  }
  EXPECT_GT(found, 1000U) << "most requests must not be empty";
  EXPECT_GT(texts, 100U);
}

TEST(Page, of_a_list_in_brief_is_the_whole_list) {
  Seeded random;
  QuietSegment s;
  fill(s, random);
  const std::vector<JobInfo> all = s.observer.list({});
  std::size_t found = 0, dead = 0;
  for (int i = 0; i < 1000; ++i) {
    JobPageRequest request = any_request(random, all);
    request.behind.reset();
    const std::vector<BriefJob> brief = s.observer.brief_list(request);
    request.offset = 0, request.limit = all.size();
    const JobPage wanted = expected(s, request);
    ASSERT_EQ(brief.size(), wanted.jobs.size()) << "request " << i;
    for (std::size_t at = 0; at < brief.size(); ++at) {
      ASSERT_EQ(brief[at].id, wanted.jobs[at].id);
      ASSERT_EQ(brief[at].state, wanted.jobs[at].state);
      ASSERT_EQ(brief[at].dead_letter, wanted.jobs[at].dead_letter);
      dead += brief[at].dead_letter ? 1 : 0;
    }
    found += brief.size();
  }
  EXPECT_GT(found, 1000U) << "most requests must not be empty";
  EXPECT_GT(dead, 10U);
}

TEST(Page, of_many_jobs_keeps_the_first_of_them_in_either_direction) {
  QuietSegment s(few_slots(8192));
  Ids made;
  for (int i = 0; i < 6000; ++i) made.push_back(s.put(i % 7));
  JobPageRequest request;
  request.limit = 100;
  request.falls = false;
  EXPECT_EQ(ids_of(s.observer.page(request).jobs), Ids(made.begin(), made.begin() + 100));
  request.falls = true;
  request.offset = 200;
  const JobPage page = s.observer.page(request);
  EXPECT_EQ(ids_of(page.jobs), Ids(made.rbegin() + 200, made.rbegin() + 300));
  EXPECT_EQ(page.total, 6000U);
  EXPECT_TRUE(page.more);
  request.offset = 5950;
  EXPECT_EQ(s.observer.page(request).jobs.size(), 50U);
  EXPECT_FALSE(s.observer.page(request).more);
  // those that come first stand in slots all over the segment
  for (const bool falls : {false, true}) {
    const JobPageRequest by_priority{.order = JobOrder::kPriority, .falls = falls, .limit = 100};
    EXPECT_EQ(ids_of(s.observer.page(by_priority).jobs), ids_of(expected(s, by_priority).jobs));
  }
  constexpr std::size_t kHuge = ~std::size_t{0};
  for (const auto& [offset, limit, wanted] : {std::tuple{0UL, kHuge, 6000UL},
                                              {5UL, kHuge / 2, 5995UL},
                                              {kHuge, kHuge, 0UL},
                                              {kHuge, 1UL, 0UL}}) {
    request.offset = offset, request.limit = limit;
    EXPECT_EQ(s.observer.page(request).jobs.size(), wanted) << offset << ' ' << limit;
  }
  request.filter.queue = "none";
  EXPECT_EQ(s.observer.page(request).total, 0U);
}

TEST(Page, has_the_jobs_that_use_slots_again) {
  QuietSegment s(few_slots(64));
  Seeded random;
  std::size_t again = 0;
  std::set<std::string> gone;
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 8; ++i) s.put(random.between(0, 5));
    s.move_clock(static_cast<std::uint64_t>(random.between(0, 20)));
    JobPageRequest request{.limit = 20};
    request.falls = random.coin();
    const JobPage page = s.observer.page(request), wanted = expected(s, request);
    ASSERT_EQ(ids_of(page.jobs), ids_of(wanted.jobs)) << "round " << round;
    ASSERT_EQ(page.total, wanted.total);
    while (s.worker.try_fetch(s.job)) {
      gone.insert(std::string(s.job.id()));
      ASSERT_TRUE(s.worker.ack(s.job).ok());
    }
  }
  for (const std::string& id : gone) again += s.observer.get(id).ok() ? 0 : 1;
  EXPECT_GT(again, 200U) << "most slots must have been used again";
}

TEST(Page, is_the_same_for_all_threads) {
  Seeded random;
  QuietSegment s;
  fill(s, random);
  const std::vector<JobInfo> all = s.observer.list({});
  std::vector<JobPageRequest> requests;
  std::vector<Ids> wanted;
  for (int i = 0; i < 200; ++i) {
    requests.push_back(any_request(random, all));
    wanted.push_back(ids_of(expected(s, requests.back()).jobs));
  }
  std::atomic<int> wrong{0};
  const auto look = [&] {
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (ids_of(s.observer.page(requests[i]).jobs) != wanted[i]) ++wrong;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(look);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Page, SUM_10_of_unique_jobs_has_those_that_keep_others_out) {
  QuietSegment s;
  s.stop_clock();
  const auto put = [&](const char* type, const char* policy) {
    JobSpec spec = spec_of();
    spec.type = type;
    const JobUnique unique = JobUnique::of(spec, std::string_view(policy)).value();
    spec.unique = &unique;
    return s.put(spec);
  };
  s.put();
  const std::string live = put("a", "{}");
  const std::string done = put("b", R"({"states":["available","completed"],"period":"PT2H"})");
  const std::string gone = put("c", "{}");
  ASSERT_TRUE(s.producer.cancel(gone).ok());
  while (s.take() != done) {}
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  const auto held = [&] {
    const auto ids = ids_of(s.observer.page({.filter = {.unique = true}}).jobs);
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size());
    const auto listed = ids_of(s.observer.list({.unique = true}));
    EXPECT_EQ(std::set(ids.begin(), ids.end()), std::set(listed.begin(), listed.end()));
    return std::set(ids.begin(), ids.end());
  };
  EXPECT_EQ(held(), (std::set{live, done}));
  EXPECT_EQ(s.observer.page({.filter = {.unique = true}}).jobs[0].unique_key.size(), 32U);
  s.move_clock(3 * kHour);
  EXPECT_EQ(held(), std::set{live}) << "its period is over";
}

}  // namespace
}  // namespace ojs_shm::test
