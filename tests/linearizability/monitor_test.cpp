// SPDX-License-Identifier: Apache-2.0
// Method: small histories of known verdict, then tens of thousands of random small ones on which
// the monitor, which reasons, and the search, which tries every order, must agree. No threads.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/linearizability/monitor.hpp"
#include "tests/linearizability/search.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

/// Builds histories by hand: put(job, level, call, return), got(job, level, call, return),
/// empty(call, return).
struct Written {
  History history;
  Written& put(std::uint8_t job, std::uint8_t level, std::uint64_t call, std::uint64_t returned) {
    return add(Kind::kEnqueue, Answer::kOk, job, level, call, returned);
  }
  Written& got(std::uint8_t job, std::uint8_t level, std::uint64_t call, std::uint64_t returned) {
    return add(Kind::kFetch, Answer::kOk, job, level, call, returned);
  }
  Written& empty(std::uint64_t call, std::uint64_t returned) {
    return add(Kind::kFetch, Answer::kEmpty, kNoJob, 0, call, returned);
  }
  Written& add(Kind kind, Answer answer, std::uint8_t job, std::uint8_t level, std::uint64_t call,
               std::uint64_t returned) {
    history.operations.push_back({.kind = kind,
                                  .answer = answer,
                                  .job = job,
                                  .level = level,
                                  .call = call,
                                  .returned = returned});
    return *this;
  }
};

void expect_right(const Written& written) {
  EXPECT_EQ(monitor(written.history).value_or(""), "") << print(written.history);
  EXPECT_EQ(search(written.history), Verdict::kRight) << print(written.history);
}
void expect_wrong(const Written& written, std::string_view reason) {
  const auto finding = monitor(written.history);
  ASSERT_TRUE(finding) << print(written.history);
  EXPECT_NE(finding->find(reason), std::string::npos) << *finding;
  EXPECT_EQ(search(written.history), Verdict::kWrong) << print(written.history);
}

TEST(Monitor, accepts_what_overlapping_calls_may_do) {
  expect_right(Written().empty(0, 1));
  // fetched before its enqueue returned
  expect_right(Written().put(0, 1, 0, 10).got(0, 1, 2, 8));
  expect_right(Written().put(0, 1, 0, 1).empty(2, 9).got(0, 1, 3, 8));  // empty after the fetch
  expect_right(Written().put(0, 0, 0, 9).put(1, 0, 2, 7).got(1, 0, 10, 11).got(0, 0, 12, 13));
  expect_right(Written().put(0, 0, 0, 9).put(1, 2, 2, 3).got(1, 2, 4, 5).got(0, 0, 12, 13));
  // at 4
  expect_right(
      Written().put(0, 0, 0, 1).got(0, 0, 2, 4).put(1, 0, 4, 6).got(1, 0, 7, 8).empty(2, 8));
}

TEST(Monitor, rejects_each_kind_of_wrong) {
  expect_wrong(Written().got(0, 0, 0, 1), "never enqueued");
  expect_wrong(Written().got(0, 0, 0, 1).put(0, 0, 2, 3), "before it was enqueued");
  expect_wrong(Written().put(0, 0, 0, 1).got(0, 0, 2, 3).got(0, 0, 4, 5), "twice");
  expect_wrong(Written().put(0, 0, 0, 1).put(1, 1, 2, 3).got(1, 1, 4, 5), "something better");
  expect_wrong(Written().put(0, 0, 0, 1).put(1, 0, 2, 3).got(1, 0, 4, 5).got(0, 0, 6, 7),
               "overtook");
  // and is never fetched
  expect_wrong(Written().put(0, 0, 0, 1).put(1, 0, 2, 3).got(1, 0, 4, 5), "overtook");
  expect_wrong(Written().put(0, 0, 0, 1).empty(2, 3), "empty");
}

TEST(Monitor, rejects_what_only_several_jobs_together_forbid) {
  // Two better jobs, neither there during the whole call, cover it one after the other.
  expect_wrong(Written()
                   .put(0, 0, 0, 1)
                   .put(1, 0, 2, 3)
                   .put(2, 1, 0, 1)
                   .got(2, 1, 2, 9)
                   .got(0, 0, 6, 7)
                   .got(1, 0, 10, 11),
               "something better");
  expect_wrong(
      Written().put(0, 0, 0, 1).put(1, 1, 2, 3).empty(4, 9).got(0, 0, 6, 7).got(1, 1, 10, 11),
      "empty");
  // A better job allows the fetches of a level only in an order in which that level's FIFO does
  // not.
  expect_wrong(Written()
                   .put(0, 0, 0, 1)
                   .got(0, 0, 8, 9)
                   .put(1, 1, 0, 1)
                   .put(2, 1, 2, 3)
                   .got(1, 1, 4, 12)
                   .put(3, 0, 3, 4)
                   .got(3, 0, 11, 13)
                   .put(4, 0, 12, 13)
                   .got(4, 0, 20, 21)
                   .got(2, 1, 5, 10),
               "");
}

/// Any calls at any time, so many are wrong; or those of a right queue, stretched, and perhaps
/// spoilt by one change.
History any_history(Seeded& random) {
  Written written;
  const auto jobs = static_cast<std::uint8_t>(random.between(1, 5));
  auto span = [&random](std::uint64_t& call, std::uint64_t& returned) {
    call = static_cast<std::uint64_t>(random.between(0, 24));
    returned = call + static_cast<std::uint64_t>(random.between(0, 9));
  };
  for (std::uint8_t job = 0; job < jobs; ++job) {
    std::uint64_t call, returned;
    const auto level = static_cast<std::uint8_t>(random.between(0, 2));
    span(call, returned);
    written.put(job, level, call, returned);
    if (random.between(0, 9) == 0) continue;
    call = returned + static_cast<std::uint64_t>(random.between(0, 12));
    call -= std::min<std::uint64_t>(call, 3);
    written.got(job, level, call, call + static_cast<std::uint64_t>(random.between(0, 9)));
  }
  if (std::uint64_t call, returned; random.coin()) {
    span(call, returned);
    written.empty(call, returned);
  }
  return written.history;
}

History stretched_history(Seeded& random) {
  Written written;
  std::vector<std::pair<std::uint8_t, std::uint8_t>> waiting;  // level, job
  std::uint64_t now = 20;
  std::uint8_t jobs = 0;
  for (int i = 0; i < 10; ++i, now += 4) {
    const std::uint64_t call = now - static_cast<std::uint64_t>(random.between(0, 9));
    const std::uint64_t returned = now + static_cast<std::uint64_t>(random.between(0, 9));
    if (jobs < 6 && random.coin()) {
      const auto level = static_cast<std::uint8_t>(random.between(0, 2));
      written.put(jobs, level, call, returned);
      waiting.emplace_back(level, jobs++);
      std::stable_sort(waiting.begin(), waiting.end(),
                       [](auto& a, auto& b) { return a.first < b.first; });
    } else if (waiting.empty()) {
      written.empty(call, returned);
    } else {
      written.got(waiting.front().second, waiting.front().first, call, returned);
      waiting.erase(waiting.begin());
    }
  }
  History& history = written.history;
  if (random.coin()) {  // one call happens at another time
    auto& spoilt = history.operations[static_cast<std::size_t>(random.between(0, 9))];
    spoilt.call = static_cast<std::uint64_t>(random.between(11, 60));
    spoilt.returned = spoilt.call + static_cast<std::uint64_t>(random.between(0, 9));
  }
  return history;
}

TEST(Monitor, agrees_with_the_search_on_every_small_history) {
  Seeded random;
  std::uint64_t right = 0, wrong = 0;
  for (int i = 0; i < 100'000; ++i) {
    const History history = i % 2 == 0 ? any_history(random) : stretched_history(random);
    const bool by_search = search(history) == Verdict::kRight;
    const auto finding = monitor(history);
    ++(by_search ? right : wrong);
    if (by_search != finding.has_value()) continue;
    const History less = shrink(history, [](const History& h) {
      return (search(h) == Verdict::kRight) == monitor(h).has_value();
    });
    FAIL() << (by_search ? "the search finds an order, the monitor says: " + *finding
                         : "the monitor finds nothing")
           << "\n"
           << print(less);
  }
  std::cout << right << " right and " << wrong << " wrong histories\n";
  EXPECT_GT(std::min(right, wrong), 10'000U);
}

TEST(Monitor, a_wrong_history_stays_wrong_while_it_shrinks_to_its_core) {
  Written written;
  written.put(9, 0, 100, 101).put(8, 1, 102, 103).got(8, 1, 104, 105).got(9, 0, 200, 201);
  for (std::uint8_t job = 20; job < 60; ++job)
    written.put(job, 3, 300 + job * 4U, 301 + job * 4U).got(job, 3, 302 + job * 4U, 303 + job * 4U);
  const History less =
      shrink(written.history, [](const History& h) { return monitor(h).has_value(); });
  EXPECT_EQ(less.operations.size(), 4U) << print(less);
  EXPECT_TRUE(monitor(less));
}

}  // namespace
}  // namespace ojs_shm::test
