// SPDX-License-Identifier: Apache-2.0
// Commands that choose jobs by flags instead of ids, and the wording of refusals that they share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

std::size_t waiting(const LiveSegment& segment, const std::string& state) {
  return lines_of(segment.cli({"list", "--state", state}).out).size();
}

TEST(CliBulk, cancels_what_flags_choose_and_prints_how_many) {
  const LiveSegment segment;
  for (int i = 0; i < 3; ++i) segment.enqueue({"-t", "a", "--queue", "mail"});
  for (int i = 0; i < 2; ++i) segment.enqueue({"-t", "b", "--queue", "mail"});
  segment.enqueue({"-t", "a", "--queue", "other"});
  const Finished done = segment.cli({"cancel", "--queue", "mail", "--type", "a"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "3 jobs cancelled\n");
  EXPECT_EQ(waiting(segment, "cancelled"), 3U);
  EXPECT_EQ(waiting(segment, "available"), 3U);
  EXPECT_EQ(segment.cli({"cancel", "--state", "available", "--yes", "--json"}).out,
            "{\"matched\":3,\"done\":3,\"skipped\":0}\n");
}

TEST(CliBulk, nothing_is_done_to_all_jobs_by_an_oversight) {
  const LiveSegment segment;
  const std::string id = segment.enqueue({"-t", "a"});
  for (const Words& words :
       {Words{"cancel"}, {"cancel", id, "--queue", "default"}, {"promote"}, {"dead", "retry"}}) {
    const Finished done = segment.cli(words);
    EXPECT_EQ(done.exit_code, 2) << words[0];
    EXPECT_THAT(done.err, HasSubstr("--queue")) << words[0];
  }
  EXPECT_EQ(segment.cli({"cancel", "--queue", "nobody"}).exit_code, 4);
  EXPECT_EQ(waiting(segment, "available"), 1U);
}

TEST(CliBulk, asks_on_a_terminal_and_a_no_changes_nothing) {
  const LiveSegment segment;
  segment.enqueue({"-t", "a"});
  const auto answer = [&](const std::string& text) {
    // script(1) gives the command a terminal.
    const std::string command =
        program("ojs-shm") + " cancel --type a --name test --dir " + segment.folder().path();
    return run({"sh", "-c", "printf '" + text + "\\n' | script -qec '" + command + "' /dev/null"});
  };
  const Finished no = answer("n");
  if (no.exit_code == 127) GTEST_SKIP() << "NOT RUN: there is no script(1)";
  EXPECT_EQ(no.exit_code, 1);
  EXPECT_THAT(no.out, HasSubstr("Cancel 1 job? [y/N]"));
  EXPECT_EQ(waiting(segment, "available"), 1U);
  EXPECT_EQ(answer("y").exit_code, 0);
  EXPECT_EQ(waiting(segment, "cancelled"), 1U);
}

TEST(CliBulk, clears_a_queue_of_all_that_waits_and_leaves_active_jobs) {
  const LiveSegment segment;
  auto producer = Producer::attach(segment.where()).value();
  auto worker = Worker::attach(segment.where(), {}).value();
  ASSERT_TRUE(producer.enqueue({.type = "a"}));
  Job job;
  ASSERT_TRUE(worker.try_fetch(job));
  segment.enqueue({"-t", "a"});
  segment.enqueue({"-t", "a", "--delay", "1h"});
  segment.enqueue({"-t", "a", "--pending"});
  EXPECT_EQ(segment.cli({"queue", "clear", "default"}).out, "3 jobs cancelled\n");
  EXPECT_TRUE(worker.ack(job));
  EXPECT_EQ(segment.cli({"queue", "clear", "nobody"}).exit_code, 4);
}

TEST(CliBulk, runs_scheduled_and_retryable_jobs_now) {
  const LiveSegment segment;
  const std::string one = segment.enqueue({"-t", "a", "--delay", "10h"});
  const std::string two = segment.enqueue({"-t", "a", "--delay", "10h"});
  const std::string failed = segment.enqueue({"-t", "b", "--retry", "initial=10h,max=10h"});
  ASSERT_EQ(segment.cli({"work", "--until-empty", "--", "false"}).exit_code, 0);
  ASSERT_EQ(segment.job(failed, "state"), "retryable");
  EXPECT_EQ(segment.cli({"promote", one}).exit_code, 0);
  EXPECT_EQ(segment.job(one, "state"), "available");
  const Finished again = segment.cli({"promote", one});
  EXPECT_EQ(again.exit_code, 5);
  EXPECT_THAT(again.err, HasSubstr("scheduled or retryable"));
  EXPECT_EQ(segment.cli({"promote", "--queue", "default"}).out, "2 jobs promoted\n");
  EXPECT_EQ(segment.cli({"work", "--until-empty", "--", "true"}).exit_code, 0);
  for (const std::string& id : {one, two, failed}) EXPECT_EQ(segment.job(id, "state"), "completed");
  EXPECT_EQ(segment.cli({"audit"}).exit_code, 0);
}

TEST(CliBulk, dead_letters_of_one_queue_go_again_or_away) {
  const LiveSegment segment;
  for (const char* queue : {"a", "a", "b"})
    segment.enqueue(
        {"-t", "t", "--queue", queue, "--retry", "max_attempts=1,on_exhaustion=dead_letter"});
  ASSERT_EQ(segment.cli({"work", "--queue", "a,b", "--until-empty", "--", "false"}).exit_code, 0);
  EXPECT_EQ(segment.cli({"dead", "retry", "--queue", "a"}).out, "2 dead letters available again\n");
  EXPECT_EQ(segment.cli({"dead", "drop", "--all"}).out, "1 dead letter dropped\n");
  EXPECT_EQ(waiting(segment, "available"), 2U);
}

TEST(CliBulk, jobs_that_are_over_are_dropped_by_id_and_by_their_end) {
  const LiveSegment segment;
  for (const char* queue : {"a", "a", "b"})
    segment.enqueue({"-t", "t", "--queue", queue, "--retry", "max_attempts=1"});
  ASSERT_EQ(segment.cli({"work", "--queue", "a", "--until-empty", "--", "true"}).exit_code, 0);
  ASSERT_EQ(segment.cli({"work", "--queue", "b", "--until-empty", "--", "false"}).exit_code, 0);
  const std::string waiting_id = segment.enqueue({"-t", "t", "--queue", "b"});
  EXPECT_EQ(segment.cli({"drop"}).exit_code, 2);
  EXPECT_EQ(segment.cli({"drop", waiting_id}).exit_code, 5);
  for (const char* ago : {"1h", "1000000d"}) {  // the latter before there was time
    EXPECT_EQ(segment.cli({"drop", "--ended-ago", ago}).out, "0 jobs dropped\n");
    EXPECT_EQ(segment.cli({"drop", "--older-than", ago}).out, "0 jobs dropped\n");
  }
  EXPECT_EQ(lines_of(segment.cli({"list", "--error-type", "exit"}).out).size(), 1U);
  const std::string done = lines_of(segment.cli({"list", "--state", "completed"}).out)[0];
  EXPECT_EQ(segment.cli({"drop", done.substr(0, done.find('\t'))}).exit_code, 0);
  EXPECT_EQ(segment.cli({"drop", "--state", "completed"}).out, "1 job dropped\n");
  EXPECT_EQ(segment.cli({"drop", "--error-type", "exit"}).out, "1 job dropped\n");
  EXPECT_EQ(lines_of(segment.cli({"list"}).out).size(), 1U);
}

TEST(CliBulk, lists_by_tenant_priority_and_age) {
  const LiveSegment segment;
  const std::string mine =
      segment.enqueue({"-t", "a", "--meta", R"({"tenant_id":"x"})", "--priority", "1"});
  segment.enqueue({"-t", "a", "--meta", R"({"tenant_id":"y"})"});
  const auto ids = [&](const Words& flags) {
    Words words = {"list"};
    words.insert(words.end(), flags.begin(), flags.end());
    return lines_of(segment.cli(words).out).size();
  };
  EXPECT_EQ(ids({"--tenant", "x"}), 1U);
  EXPECT_EQ(ids({"--priority", "high"}), 1U);
  EXPECT_EQ(ids({"--tenant", "x", "--priority", "2"}), 0U);
  EXPECT_EQ(ids({"--older-than", "1h"}), 0U);
  EXPECT_TRUE(eventually([&] { return ids({"--older-than", "1ms"}) == 2; }));
}

TEST(CliRefusals, one_wording_for_what_is_not_an_id_and_one_for_an_unknown_id) {
  const LiveSegment segment;
  const std::string unknown = "01999999-9999-7999-8999-999999999999";
  for (const Words& words : {Words{"get"},
                             {"cancel"},
                             {"wait"},
                             {"activate"},
                             {"promote"},
                             {"drop"},
                             {"dead", "retry"},
                             {"dead", "drop"}}) {
    Words text = words, id = words;
    text.emplace_back("abc");
    id.push_back(unknown);
    const Finished wrong = segment.cli(text), missing = segment.cli(id);
    EXPECT_EQ(wrong.exit_code, 4) << words[0];
    EXPECT_THAT(wrong.err, testing::StartsWith("'abc' is not a job id: ")) << words[0];
    EXPECT_EQ(missing.exit_code, 4) << words[0];
    EXPECT_EQ(missing.err, "no job with id " + unknown + "\n") << words[0];
  }
  EXPECT_THAT(segment.cli({"reprioritize", "abc", "1"}).err,
              testing::StartsWith("'abc' is not a job id: "));
  EXPECT_EQ(segment.cli({"reprioritize", unknown, "1"}).err, "no job with id " + unknown + "\n");
  const Finished own = segment.cli({"enqueue", "-t", "a", "--id", "abc"});
  EXPECT_EQ(own.exit_code, 2) << "a wrong argument, in the same words";
  EXPECT_EQ(own.err, segment.cli({"get", "abc"}).err);
  auto producer = Producer::attach(segment.where()).value();
  EXPECT_EQ(producer.get("abc").error().message + "\n", own.err);
  EXPECT_EQ(producer.enqueue({.type = "a", .id = "abc"}).error().message + "\n", own.err);
  EXPECT_EQ(producer.cancel(unknown).error().message, "no job with id " + unknown);
}

TEST(CliRefusals, what_is_not_there_is_status_4_and_what_says_nothing_status_2) {
  const LiveSegment segment;
  for (const Words& words :
       {Words{"limit", "rm", "x"}, {"pool", "rm", "x"}, {"list", "--queue", "x"}}) {
    const Finished done = segment.cli(words);
    EXPECT_EQ(done.exit_code, 4) << words[0];
    EXPECT_THAT(done.err, HasSubstr("'x'")) << words[0];
  }
  const Finished limit = segment.cli({"limit", "set", "k"});
  EXPECT_EQ(limit.exit_code, 2);
  EXPECT_THAT(limit.err, HasSubstr("--concurrency N"));
  const Finished simulated =
      segment.cli({"simulate", "--synthetic", "jobs=10,rate=1", "--workers", "0"});
  EXPECT_EQ(simulated.exit_code, 2);
  EXPECT_THAT(simulated.err, HasSubstr("--workers N"));
  EXPECT_THAT(segment.cli({"enqueue", "-t", "a", "--delay", "5x"}).err,
              HasSubstr("for example 500ms, 30s, 5m"));
}

TEST(CliOutcome, a_job_over_its_timeout_is_timed_out_and_not_lost) {
  const LiveSegment segment;
  const std::string id =
      segment.enqueue({"-t", "a", "--timeout", "100ms", "--retry", "max_attempts=1"});
  const Finished done = segment.cli({"work", "--count", "1", "--grace", "1s", "--", "sleep", "30"});
  EXPECT_THAT(done.out, HasSubstr(id + "\ta\t1\ttimed_out\t")) << done.out;
  EXPECT_EQ(segment.job(id, "state"), "discarded");
}

TEST(CliOutcome, get_says_why_a_job_was_discarded_and_that_it_is_a_dead_letter) {
  const LiveSegment segment;
  const std::string dead =
      segment.enqueue({"-t", "a", "--retry", "max_attempts=1,on_exhaustion=dead_letter"});
  ASSERT_EQ(segment.cli({"work", "--until-empty", "--", "false"}).exit_code, 0);
  EXPECT_EQ(segment.job(dead, "dead_letter"), "true");
  EXPECT_EQ(segment.job(dead, "discard_reason"), "failed");
  const std::string late = segment.enqueue({"-t", "a", "--expires", "1ms"});
  ASSERT_TRUE(segment.becomes(late, "discarded"));
  EXPECT_EQ(segment.job(late, "discard_reason"), "expired");
  EXPECT_EQ(segment.job(late, "dead_letter"), "");
  ASSERT_EQ(
      segment.cli({"queue", "set", "q", "--max-depth", "1", "--strategy", "drop_oldest"}).exit_code,
      0);
  const std::string first = segment.enqueue({"-t", "a", "--queue", "q"});
  segment.enqueue({"-t", "a", "--queue", "q"});
  EXPECT_EQ(segment.job(first, "discard_reason"), "dropped");
}

TEST(EmptyHandle, what_holds_no_job_is_told_apart_from_what_lost_it) {
  const LiveSegment segment;
  auto worker = Worker::attach(segment.where(), {}).value();
  Job job;
  EXPECT_EQ(worker.ack(job).code(), Code::kEmpty);
  EXPECT_EQ(worker.nack(job, {}).code(), Code::kEmpty);
  EXPECT_EQ(worker.requeue(job).code(), Code::kEmpty);
  EXPECT_EQ(worker.heartbeat(job).code(), Code::kEmpty);
  EXPECT_EQ(worker.progress(job, 0.5).code(), Code::kEmpty);
  segment.enqueue({"-t", "a"});
  ASSERT_TRUE(worker.try_fetch(job));
  ASSERT_TRUE(worker.ack(job));
  EXPECT_EQ(worker.ack(job).code(), Code::kLost);
}

}  // namespace
}  // namespace ojs_shm::test
