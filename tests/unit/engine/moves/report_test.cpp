// SPDX-License-Identifier: Apache-2.0
// What a running job's holder, or any process by its id, reports: a fraction, a message, data. They
// stand in the segment, change together, and leave no block behind.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>

#include <ojs_shm/proxy.hpp>

#include "engine/moves/report.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

class Reports : public testing::Test {
 protected:
  std::string begin(const JobSpec& spec = spec_of()) {
    const std::string id = s.put(spec);
    EXPECT_EQ(s.take(), id);
    return id;
  }
  std::uint64_t blocks() const { return s.pool_use("blocks"); }
  std::uint64_t free_blocks() const {
    for (const PoolInfo& pool : s.observer.segment_info().pools)
      if (pool.name == "blocks") return pool.capacity - pool.used;
    return 0;
  }
  /// Fills all other blocks with jobs that are never fetched: the next job gets a block just freed.
  void leave_blocks(std::uint64_t few) {
    JobSpec ballast = spec_of({}, "ballast");
    for (std::size_t size = 60'000; size > 300; size /= 2) {
      const std::string args = "[\"" + std::string(size, 'b') + "\"]";
      ballast.args = args;
      while (free_blocks() >= few + size / 200 + 1) s.put(ballast);
    }
  }
  static constexpr int kTurn = 160;  ///< jobs until a slot is used again
  QuietSegment s{few_slots(128)};
  Proxy proxy = Proxy::attach(s.segment).value();
};

/// Some bytes of each length, of which one may not be another's.
std::string text_of(int number, std::size_t size) {
  return std::to_string(number) + ":" + std::string(size, static_cast<char>('a' + number % 26));
}

TEST_F(Reports, stand_in_the_segment_for_every_process) {
  const std::string id = begin();
  ASSERT_TRUE(s.worker.progress(s.job, 0.25, "a quarter", R"({"rows":25})").ok());
  const JobInfo job = s.get(id);
  EXPECT_EQ(job.progress, 0.25);
  EXPECT_EQ(job.progress_message, "a quarter");
  EXPECT_EQ(job.progress_data, R"({"rows":25})");
  EXPECT_LE(s.now_ms() - job.progress_at_ms, kMinute);

  ASSERT_TRUE(proxy.progress(id, job.fence, 0.5, "half").ok()) << "another handle, by its id";
  EXPECT_EQ(s.get(id).progress_message, "half");
  EXPECT_EQ(s.get(id).progress_data, "") << "they change together";
  ASSERT_TRUE(s.worker.progress(s.job, 0.75).ok());
  EXPECT_EQ(s.get(id).progress, 0.75);
  EXPECT_EQ(s.get(id).progress_message, "half") << "a fraction alone leaves the texts";
}

TEST_F(Reports, behind_what_was_reported_change_nothing_but_the_lease) {
  JobSpec spec = spec_of();
  spec.lease_ms = kMinute;
  s.stop_clock();
  const std::string id = begin(spec);
  ASSERT_TRUE(s.worker.progress(s.job, 0.75, "half", "[1]").ok());
  const std::uint64_t before = blocks(), at = s.get(id).progress_at_ms;
  s.move_clock(kMinute - 1);
  ASSERT_TRUE(proxy.progress(id, 0, 0.1, "behind", "[2]").ok());
  ASSERT_TRUE(s.worker.progress(s.job, 0.1).ok());
  const JobInfo job = s.get(id);
  EXPECT_EQ(job.progress, 0.75);
  EXPECT_EQ(job.progress_message, "half");
  EXPECT_EQ(job.progress_data, "[1]");
  EXPECT_EQ(job.progress_at_ms, at);
  EXPECT_EQ(blocks(), before);
  EXPECT_EQ(s.job.deadline_ms(), s.now_ms() + kMinute);
  ASSERT_TRUE(proxy.progress(id, 0, 0.75, "as far").ok());
  EXPECT_EQ(s.get(id).progress_message, "as far");
}

TEST_F(Reports, without_a_fraction_leave_it_as_it_was) {
  const std::string id = begin();
  ASSERT_TRUE(proxy.progress(id, 0, std::nullopt, "", "[0]").ok());
  EXPECT_EQ(s.get(id).progress, 0);
  EXPECT_EQ(s.get(id).progress_data, "[0]");
  ASSERT_TRUE(proxy.progress(id, 0, 0.5).ok());
  ASSERT_TRUE(proxy.progress(id, 0, std::nullopt, "", "[1]").ok());
  EXPECT_EQ(s.get(id).progress, 0.5);
  EXPECT_EQ(s.get(id).progress_data, "[1]");
}

/// What is read is told again, by an import or with other data.
TEST_F(Reports, of_what_was_read_are_not_behind_it) {
  for (std::uint64_t parts = 1; parts <= 10'001; ++parts)
    ASSERT_EQ(engine::ReportWord::parts_of(static_cast<double>(parts - 1) / 10'000), parts);
}

TEST_F(Reports, of_a_job_that_is_done_are_all_done) {
  const std::string id = begin();
  ASSERT_TRUE(s.worker.progress(s.job, 0.3, "a third").ok());
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(s.get(id).progress, 1.0);
  EXPECT_EQ(s.get(id).progress_message, "a third");
  const std::string silent = begin();
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_LT(s.get(silent).progress, 0) << "it never reported";
}

TEST_F(Reports, belong_to_one_attempt) {
  JobSpec spec = spec_of();
  spec.retry = {5, 1, 1, 1.0F, RetryBackoff::kConstant, false, true};
  const std::string id = begin(spec);
  const std::uint64_t before = blocks();
  ASSERT_TRUE(s.worker.progress(s.job, 0.8, "soon", "[1]").ok());
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  EXPECT_EQ(s.get(id).progress, 0.8) << "how far it came";
  EXPECT_EQ(s.get(id).progress_message, "soon");
  s.pass(kHour);
  ASSERT_EQ(s.take(), id);
  EXPECT_LT(s.get(id).progress, 0);
  EXPECT_EQ(s.get(id).progress_message, "");
  ASSERT_TRUE(s.worker.progress(s.job, 0.1).ok());
  EXPECT_EQ(s.get(id).progress, 0.1);
  EXPECT_EQ(s.get(id).progress_message, "");
  EXPECT_EQ(blocks(), before + 1) << "of the error alone";
}

TEST_F(Reports, of_an_attempt_that_is_not_counted_are_gone) {
  const std::string id = begin();
  ASSERT_TRUE(s.worker.progress(s.job, 0.8, "soon").ok());
  ASSERT_TRUE(s.worker.requeue(s.job).ok());
  EXPECT_LT(s.get(id).progress, 0);
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.job.attempt(), 1);
  EXPECT_LT(s.get(id).progress, 0);
  EXPECT_EQ(s.get(id).progress_message, "");
  ASSERT_TRUE(s.worker.progress(s.job, 0.1).ok());
  EXPECT_EQ(s.get(id).progress, 0.1);
}

TEST_F(Reports, of_a_dead_letter_end_with_its_retry) {
  JobSpec spec = spec_of();
  spec.retry.max_attempts = 1;
  spec.retry.dead_letter = true;
  const std::string id = begin(spec);
  ASSERT_TRUE(s.worker.progress(s.job, 0.8, "soon").ok());
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  EXPECT_EQ(s.get(id).progress_message, "soon");
  ASSERT_TRUE(s.admin.retry_dead(id).ok());
  ASSERT_EQ(s.take(), id);
  EXPECT_LT(s.get(id).progress, 0);
  EXPECT_EQ(s.get(id).progress_message, "");
}

TEST_F(Reports, keep_a_checkpoint_for_whatever_attempt_comes_next) {
  JobSpec spec = spec_of();
  spec.retry = {5, 1, 1, 1.0F, RetryBackoff::kConstant, false, true};
  const std::string id = begin(spec);
  EXPECT_EQ(s.job.last_checkpoint(), "");
  ASSERT_TRUE(s.worker.progress(s.job, 0.8, "soon", "[1]").ok());
  ASSERT_TRUE(s.worker.checkpoint(s.job, R"({"row":8})").ok());
  EXPECT_EQ(s.get(id).progress_message, "soon") << "it changes nothing else";
  EXPECT_EQ(s.get(id).progress_data, "[1]");
  EXPECT_EQ(s.get(id).progress, 0.8);
  ASSERT_TRUE(s.worker.progress(s.job, 0.9, "sooner").ok());
  EXPECT_EQ(s.get(id).last_checkpoint, R"({"row":8})") << "a report leaves it";
  ASSERT_TRUE(s.worker.nack(s.job, failure()).ok());
  s.pass(kHour);
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.job.last_checkpoint(), R"({"row":8})");
  EXPECT_EQ(s.get(id).last_checkpoint, R"({"row":8})");
  EXPECT_LT(s.get(id).progress, 0);
  EXPECT_EQ(s.get(id).progress_message, "");
  ASSERT_TRUE(s.worker.progress(s.job, 0.1).ok());
  EXPECT_EQ(s.get(id).progress_message, "") << "of the attempt before";
  EXPECT_EQ(s.job.last_checkpoint(), R"({"row":8})");
  ASSERT_TRUE(s.worker.requeue(s.job).ok());
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.job.last_checkpoint(), R"({"row":8})") << "also when the attempt is not counted";
  ASSERT_TRUE(proxy.checkpoint(id, 0, "9").ok());
  EXPECT_EQ(s.job.last_checkpoint(), "9");
  EXPECT_LT(s.get(id).progress, 0) << "a checkpoint alone is no progress";
  while (s.worker.nack(s.job, failure())->state == State::kRetryable) {
    s.pass(kHour);
    ASSERT_EQ(s.take(), id);
  }
  ASSERT_TRUE(s.producer.retry(id).ok());
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.job.last_checkpoint(), "9") << "also when it was lost";
}

TEST_F(Reports, keep_no_checkpoint_that_is_no_JSON_or_too_large) {
  const std::string id = begin();
  ASSERT_TRUE(s.worker.checkpoint(s.job, "1").ok());
  EXPECT_EQ(s.worker.checkpoint(s.job, "{").error().subject, "checkpoint");
  EXPECT_EQ(proxy.checkpoint(id, 0, "").code(), Code::kInvalid);
  const std::string large = '"' + std::string(65'536, 'x') + '"';
  EXPECT_EQ(s.worker.checkpoint(s.job, large).code(), Code::kTooLarge);
  EXPECT_EQ(s.get(id).last_checkpoint, "1");
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(s.worker.checkpoint(s.job, "2").code(), Code::kLost);
}

TEST_F(Reports, of_the_largest_texts_and_checkpoint_are_both_read) {
  const std::string id = begin();
  const std::string large = '"' + std::string(65'000, 'x') + '"', text(65'000, 'm');
  ASSERT_TRUE(s.worker.checkpoint(s.job, large).ok());
  ASSERT_TRUE(s.worker.progress(s.job, 0.5, text).ok());
  EXPECT_EQ(s.get(id).progress_message, text);
  EXPECT_EQ(s.get(id).last_checkpoint, large);
}

TEST_F(Reports, with_a_checkpoint_leave_no_block_behind) {
  const std::uint64_t before = blocks();
  begin();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(s.worker.checkpoint(s.job, '"' + text_of(i, i * 41U % 2000) + '"').ok());
    ASSERT_TRUE(s.worker.progress(s.job, 0.01 * i, text_of(i, i * 37U % 2000)).ok());
  }
  EXPECT_EQ(s.job.last_checkpoint(), '"' + text_of(49, 49 * 41U % 2000) + '"');
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  for (int i = 0; i < 600; ++i) s.put(), s.drain();  // until its slot is used again
  EXPECT_EQ(blocks(), before);
}

TEST_F(Reports, renew_the_lease_and_never_shorten_it) {
  JobSpec spec = spec_of();
  spec.lease_ms = kMinute;
  s.stop_clock();
  const std::string id = begin(spec);
  s.move_clock(kMinute - 1);
  ASSERT_TRUE(s.worker.progress(s.job, 0.1).ok());
  EXPECT_EQ(s.job.deadline_ms(), s.now_ms() + kMinute);
  s.pass(kMinute - 1);
  ASSERT_TRUE(proxy.progress(id, 0, 0.2, "by its id").ok());
  s.pass(kMinute - 1);
  EXPECT_EQ(s.state_of(id), State::kActive);
  ASSERT_TRUE(s.worker.heartbeat(s.job, kHour).ok());
  ASSERT_TRUE(s.worker.progress(s.job, 0.3).ok());
  EXPECT_EQ(s.job.deadline_ms(), s.now_ms() + kHour);
  s.pass(2 * kHour);
  EXPECT_EQ(s.worker.progress(s.job, 0.4, "too late").code(), Code::kLost);
  EXPECT_NE(s.get(id).progress_message, "too late");
}

TEST_F(Reports, leave_no_block_behind) {
  const std::uint64_t before = blocks();
  const std::string id = begin();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(s.worker.progress(s.job, 0.01 * i, text_of(i, i * 37U % 2000)).ok());
  EXPECT_EQ(s.get(id).progress_message, text_of(99, 99 * 37U % 2000));
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_GT(blocks(), before);
  for (int i = 0; i < 600; ++i) s.put(), s.drain();  // until its slot is used again
  EXPECT_EQ(blocks(), before);
}

TEST_F(Reports, without_room_keep_the_fraction_and_what_was_said_before) {
  const std::string id = begin();
  ASSERT_TRUE(s.worker.progress(s.job, 0.1, "before").ok());
  EXPECT_EQ(s.worker.progress(s.job, 0.2, std::string(65'537, 'x')).code(), Code::kTooLarge);
  EXPECT_EQ(s.get(id).progress, 0.1);
  const std::string args = "[\"" + std::string(60'000, 'a') + "\"]";
  JobSpec large = spec_of();
  large.args = args;
  while (s.producer.enqueue(large)) {}
  large.args =
      "[\"0123456789012345678901234567890123456789012345678901234567890123456789"
      "0123456789012345678901234567890123456789012345678901234567890123456789\"]";
  while (s.producer.enqueue(large)) {}
  const auto full = s.worker.progress(s.job, 0.2, "after");
  EXPECT_EQ(full.code(), Code::kSegmentFull);
  EXPECT_EQ(full.error().subject, "blocks");
  EXPECT_EQ(s.get(id).progress, 0.2);
  EXPECT_EQ(s.get(id).progress_message, "before");
}

/// Between any two accesses of a report the job may be reported by another, end, or begin again.
TEST_F(Reports, of_two_at_once_are_one_or_the_other) {
  const std::string args = "[\"" + std::string(600, 'k') + "\"]";
  JobSpec large = spec_of();
  large.args = args;
  leave_blocks(12);
  bool acted = true;  // in one of the reports: the longest has as many accesses
  for (std::uint64_t at = 0; acted; ++at) {
    acted = false;
    for (int meant = 0; meant < 5; ++meant) {
      SCOPED_TRACE("at access " + std::to_string(at) + ", " + std::to_string(meant));
      const std::string id = begin();
      const std::uint64_t fence = s.job.fence(), before = blocks();
      // The last finds nothing before it, as nothing is in the slot of another job.
      const bool first = meant == 4;
      if (!first) {
        ASSERT_TRUE(s.worker.progress(s.job, 0.1, text_of(1, 300)).ok());
      }
      std::uint64_t count = 0;
      int what = 0;
      bool acting = false;
      Status reported;
      std::string kept;
      {
        const AtAccess meanwhile([&](shm::Access, shm::Point, const void*) {
          if (acting || count++ != at) return;
          acting = acted = true;
          what = meant;
          if (what == 0) {
            EXPECT_TRUE(s.worker.progress(s.job, 0.2, text_of(2, 300)).ok());
          } else if (what == 1) {
            EXPECT_TRUE(s.worker.ack(s.job).ok());
          } else if (what == 2) {
            EXPECT_TRUE(s.worker.requeue(s.job).ok());
            EXPECT_EQ(s.take(), id);
          } else {
            EXPECT_TRUE(s.worker.ack(s.job).ok());
            for (int i = 0; i < kTurn; ++i) s.put(), s.drain();
            EXPECT_FALSE(s.observer.get(id).ok()) << "its slot is another job's";
            EXPECT_TRUE(s.admin.mend().ok());
            kept = s.put(large);  // in the blocks that are free
          }
          acting = false;
        });
        reported = proxy.progress(id, fence, 0.3, text_of(3, 300));
      }
      EXPECT_EQ(s.findings(), "");
      if (what == 0) {
        EXPECT_TRUE(reported.ok());
        const JobInfo job = s.get(id);
        EXPECT_TRUE(job.progress_message == text_of(2, 300) ||
                    job.progress_message == text_of(3, 300))
            << job.progress_message;
        EXPECT_EQ(job.progress, 0.3);
      } else if (what == 2) {
        EXPECT_TRUE(reported.ok() || reported.code() == Code::kLost);
        EXPECT_LT(s.get(id).progress, 0) << "of the attempt before";
      }
      if (!kept.empty()) {
        EXPECT_EQ(s.get(kept).args, large.args) << "written over";
      }
      EXPECT_EQ(s.worker.ack(s.job).ok(), what == 0 || what == 2);
      s.drain();
      for (int i = 0; i < kTurn; ++i) s.put(), s.drain();
      EXPECT_EQ(blocks(), before);
      if (HasFailure()) return;
    }
  }
}

/// While one reports, another does, until its texts lie where those lay on which the report was to
/// build: the word of the job is the same again, what it leads to is not.
TEST_F(Reports, that_build_on_texts_of_before_lose_none_that_came_since) {
  leave_blocks(12);
  int same_again = 0;
  bool acted = true;
  for (std::uint64_t at = 0; acted; ++at) {
    SCOPED_TRACE("at access " + std::to_string(at));
    acted = false;
    const std::string id = begin();
    const engine::JobRecord& record =
        s.store().job(engine::find_job(s.store(), *engine::parse_id(id)));
    ASSERT_TRUE(s.worker.progress(s.job, 0.3, text_of(1, 300)).ok());
    const std::uint64_t word = record.signals.load();
    std::uint64_t count = 0;
    {
      const AtAccess meanwhile([&](shm::Access, shm::Point, const void*) {
        if (acted || count++ != at) return;
        acted = true;
        EXPECT_TRUE(s.worker.checkpoint(s.job, R"({"row":7})").ok());
        for (int i = 0; i < 512 && record.signals.load() != word; ++i)
          EXPECT_TRUE(s.worker.progress(s.job, 0.3, text_of(2, 300)).ok());
        same_again += record.signals.load() == word ? 1 : 0;
      });
      EXPECT_TRUE(proxy.progress(id, 0, 0.3, text_of(3, 300)).ok());
    }
    EXPECT_EQ(s.findings(), "");
    const JobInfo job = s.get(id);
    EXPECT_EQ(job.last_checkpoint, acted ? R"({"row":7})" : "");
    EXPECT_TRUE(job.progress_message == text_of(2, 300) || job.progress_message == text_of(3, 300))
        << job.progress_message;
    EXPECT_TRUE(s.worker.ack(s.job).ok());
    s.drain();
    if (HasFailure()) return;
  }
  EXPECT_GT(same_again, 10);
}

/// One stops somewhere. Another reports, and stops before its next report stands with the job; the
/// first goes on, so it may meet texts that no job has yet; then the other ends.
TEST_F(Reports, that_overlap_leave_each_other_the_texts) {
  leave_blocks(12);
  bool stopped = true;
  for (std::uint64_t at = 0; stopped; ++at) {
    SCOPED_TRACE("at access " + std::to_string(at));
    stopped = false;
    const std::string id = begin();
    ASSERT_TRUE(s.worker.progress(s.job, 0.3, text_of(1, 600)).ok());
    std::atomic<int> turn = 0;  // odd: of the other
    const auto wait_for = [&turn](int wanted) {
      while (turn < wanted) std::this_thread::yield();
    };
    std::thread other([&] {
      wait_for(1);
      EXPECT_TRUE(s.worker.checkpoint(s.job, R"({"row":7})").ok());
      {
        const AtAccess before_it_stands([&](shm::Access, shm::Point point, const void*) {
          if (point == shm::Point::kProgressSet && turn == 1) turn = 2, wait_for(3);
        });
        EXPECT_TRUE(s.worker.progress(s.job, 0.3, text_of(2, 600)).ok());
      }
      turn = 4;
    });
    std::uint64_t count = 0;
    {
      const AtAccess here([&](shm::Access, shm::Point point, const void*) {
        if (count++ == at) stopped = true, turn = 1, wait_for(2);
        if (point == shm::Point::kProgressSet && turn == 2) turn = 3, wait_for(4);
      });
      EXPECT_TRUE(proxy.progress(id, 0, 0.3, text_of(3, 600)).ok());
    }
    if (!stopped) turn = 1, wait_for(2);
    if (turn == 2) turn = 3;
    other.join();
    EXPECT_EQ(s.findings(), "");
    const JobInfo job = s.get(id);
    EXPECT_EQ(job.last_checkpoint, R"({"row":7})");
    EXPECT_TRUE(job.progress_message == text_of(2, 600) || job.progress_message == text_of(3, 600))
        << job.progress_message;
    EXPECT_TRUE(s.worker.ack(s.job).ok());
    s.drain();
    if (HasFailure()) return;
  }
}

/// Two threads report, one reads: what it reads was reported so, fraction and texts together.
TEST_F(Reports, are_never_read_torn) {
  const std::string id = begin();
  std::atomic<bool> done = false;
  std::atomic<std::uint64_t> seen = 0;
  const auto report = [&](int first) {  // until enough was read between two of them
    Proxy own = Proxy::attach(s.segment).value();
    for (int i = first; i < 2000 || (seen < 10 && i < 2'000'000); i += 2)
      EXPECT_TRUE(own.progress(id, 0, 0.5, text_of(i, 600), text_of(i, 200)).ok());
  };
  std::thread one(report, 0), other([&] { report(1), done = true; });
  while (!done) {
    const JobInfo job = s.get(id);
    if (job.progress_message.empty()) continue;
    const int number = std::stoi(job.progress_message);
    ASSERT_EQ(job.progress_message, text_of(number, 600));
    ASSERT_EQ(job.progress_data, text_of(number, 200));
    ++seen;
  }
  one.join(), other.join();
  EXPECT_GE(seen, 10U);
}

/// One handle after the other serves the same lane: their texts are told apart by their blocks.
TEST_F(Reports, have_a_word_of_their_own_whichever_handle_makes_them) {
  const std::string id = begin();
  const engine::JobRecord& record =
      s.store().job(engine::find_job(s.store(), *engine::parse_id(id)));
  std::set<std::uint64_t> words;
  for (int i = 0; i < 5; ++i) {
    Proxy own = Proxy::attach(s.segment).value();
    ASSERT_TRUE(own.progress(id, 0, 0.5, text_of(i, 100)).ok());
    words.insert(s.segment.attachment()
                     ->segment()
                     .block_word(engine::ReportWord(record.signals.load()).first_block())
                     .load());
  }
  EXPECT_EQ(words.size(), 5U);
}

/// Between any two accesses of it the job may be given back and begin again under the same number.
TEST_F(Reports, of_a_fraction_alone_that_come_too_late_are_taken_back) {
  bool acted = true;
  for (std::uint64_t at = 0; acted; ++at) {
    SCOPED_TRACE("at access " + std::to_string(at));
    acted = false;
    const std::string id = begin();
    const std::uint64_t fence = s.job.fence();
    std::uint64_t count = 0;
    Status reported;
    {
      const AtAccess meanwhile([&](shm::Access, shm::Point, const void*) {
        if (acted || count++ != at) return;
        acted = true;
        EXPECT_TRUE(s.worker.requeue(s.job).ok());
        EXPECT_EQ(s.take(), id);
      });
      reported = proxy.progress(id, fence, 0.9);
    }
    EXPECT_TRUE(reported.ok() || reported.code() == Code::kLost);
    EXPECT_EQ(s.get(id).progress, acted ? -1 : 0.9);
    ASSERT_TRUE(s.worker.progress(s.job, 0.95).ok());
    EXPECT_EQ(s.get(id).progress, 0.95);
    EXPECT_TRUE(s.worker.ack(s.job).ok());
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ojs_shm::test
