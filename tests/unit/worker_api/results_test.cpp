// SPDX-License-Identifier: Apache-2.0
// How long results are kept, and what is said of jobs that are gone. Source: ojs-results 6, 7, 9.1.
#include <ojs_shm/cron.hpp>
#include <ojs_shm/proxy.hpp>
#include <ojs_shm/transfer.hpp>
#include <ojs_shm/workflow.hpp>

#include "engine/rules/uuid.hpp"
#include "engine/tables/job_look.hpp"
#include "tests/unit/engine/quiet_segment.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::test {
namespace {

constexpr const char* kNever = "01961234-5678-7abc-8def-0123456789ab";

JobSpec kept_for(std::int64_t seconds, std::string_view extra = {}) {
  JobSpec spec = spec_of();
  spec.extra = extra;
  spec.result_ttl_s = seconds;
  return spec;
}

struct Results : testing::Test {
  QuietSegment s;
  Results() { s.stop_clock(); }

  /// The job, acked with the result.
  std::string done(const JobSpec& spec, std::string_view result = "7") {
    const std::string id = s.put(spec);
    EXPECT_EQ(s.take(), id);
    EXPECT_TRUE(s.worker.ack(s.job, result).ok());
    return id;
  }
  Error error_of(std::string_view id) const {
    const auto job = s.observer.get(id);
    EXPECT_FALSE(job.ok());
    return job.ok() ? Error{} : job.error();
  }
};

// ---- gone, or never there -----------------------------------------------------------------------

TEST_F(Results, a_job_whose_slot_was_given_away_is_gone_at_every_door) {
  QuietSegment small(few_slots(64));
  const std::string id = small.put();
  small.drain();
  EXPECT_TRUE(small.observer.get(id).ok());
  for (int i = 0; i < 64; ++i) small.put(), small.drain();
  Proxy proxy = Proxy::attach(small.segment).value();
  for (const Error& error :
       {small.observer.get(id).error(), small.producer.get(id).error(),
        small.producer.wait(id, std::chrono::milliseconds(0)).error(),
        small.producer.cancel(id).error(), small.producer.reprioritize(id, 1).error(),
        small.producer.activate(id).error(), small.producer.promote(id).error(),
        small.admin.retry_dead(id).error(), small.admin.drop_dead(id).error(),
        proxy.ack(id, 0).error()}) {
    EXPECT_EQ(error.code, Code::kNotFound);
    EXPECT_EQ(error.state, "gone");
    EXPECT_EQ(error.message,
              "job " + id + " is gone: it ended and its room was needed, or it was deleted");
  }
}

TEST_F(Results, a_deleted_dead_letter_is_gone) {
  JobSpec spec = spec_of();
  spec.retry.dead_letter = true;
  const std::string id = s.put(spec);
  ASSERT_EQ(s.take(), id);
  ASSERT_TRUE(s.worker.nack(s.job, failure(false)).ok());
  ASSERT_TRUE(s.admin.drop_dead(id).ok());
  EXPECT_EQ(error_of(id).state, "gone") << "its slot is free";
  s.put();
  EXPECT_EQ(error_of(id).state, "gone") << "its slot is another's";
}

TEST_F(Results, an_id_that_never_was_is_not_gone) {
  for (int i = 0; i < 600; ++i) s.put(), s.drain();
  EXPECT_EQ(error_of(kNever).state, "");
  EXPECT_EQ(error_of(kNever).message, std::string("no job with id ") + kNever);
  QuietSegment other;
  const std::string id = other.put();
  other.drain();
  for (int i = 0; i < 600; ++i) other.put(), other.drain();
  EXPECT_EQ(other.observer.get(id).error().state, "gone");
  EXPECT_EQ(error_of(id).state, "") << "another segment's";
}

TEST_F(Results, lives_of_a_slot_that_are_yet_to_come_are_not_gone) {
  const std::uint64_t salt = s.store().segment().header().salt;
  const auto mine = engine::parts(*engine::parse_id(s.put()), salt);
  ASSERT_TRUE(mine.has_value());
  const auto as = [&](std::uint32_t slot, std::uint32_t generation) {
    return engine::make_id(mine->unix_ms, mine->seq + 1, slot, generation, salt);
  };
  EXPECT_FALSE(engine::gave_away(s.store(), as(mine->slot, mine->generation)));
  EXPECT_FALSE(engine::gave_away(s.store(), as(mine->slot, mine->generation + 1)));
  EXPECT_FALSE(engine::gave_away(s.store(), as(mine->slot, 0)));
  EXPECT_FALSE(engine::gave_away(s.store(), as(s.store().slots(), 0)));
  EXPECT_FALSE(engine::gave_away(s.store(), as(s.store().slots(), 1)));
  s.drain();
  for (int i = 0; i < 600; ++i) s.put(), s.drain();
  EXPECT_TRUE(engine::gave_away(s.store(), as(mine->slot, mine->generation)));
}

TEST_F(Results, an_id_that_a_client_brought_is_not_remembered) {
  JobSpec spec = spec_of();
  spec.id = kNever;
  s.put(spec);
  s.drain();
  for (int i = 0; i < 600; ++i) s.put(), s.drain();
  EXPECT_EQ(error_of(kNever).state, "");
}

// ---- result_ttl ---------------------------------------------------------------------------------

TEST_F(Results, one_is_shown_until_its_time_is_over) {
  const std::string id = done(kept_for(60));
  const JobInfo before = s.get(id);
  EXPECT_EQ(before.result, "7");
  EXPECT_EQ(before.result_ttl_s, 60);
  EXPECT_EQ(before.result_expires_at_ms, before.completed_at_ms + kMinute);
  EXPECT_FALSE(before.result_pruned);
  s.move_clock(kMinute - 1);
  EXPECT_EQ(s.get(id).result, "7");
  s.move_clock(1);
  const JobInfo after = s.get(id);
  EXPECT_EQ(after.state, State::kCompleted) << "the job stays";
  EXPECT_EQ(after.result, "");
  EXPECT_TRUE(after.result_pruned);
  EXPECT_EQ(after.result_expires_at_ms, before.result_expires_at_ms);
  EXPECT_EQ(s.observer.list({}).front().result, "");
  EXPECT_EQ(s.producer.wait(id, std::chrono::milliseconds(0))->result, "");
}

TEST_F(Results, its_time_counts_from_the_end_and_not_from_the_enqueue) {
  const std::string id = s.put(kept_for(60));
  s.move_clock(kHour);
  ASSERT_EQ(s.take(), id);
  EXPECT_EQ(s.get(id).result_expires_at_ms, 0U);
  EXPECT_FALSE(s.get(id).result_pruned);
  ASSERT_TRUE(s.worker.ack(s.job, "7").ok());
  EXPECT_EQ(s.get(id).result, "7");
}

TEST_F(Results, without_a_time_or_without_end_it_stays_with_the_job) {
  const std::string plain = done(spec_of()), endless = done(kept_for(-1));
  s.move_clock(1000 * 24 * kHour);
  for (const std::string& id : {plain, endless}) {
    EXPECT_EQ(s.get(id).result, "7");
    EXPECT_EQ(s.get(id).result_expires_at_ms, 0U);
  }
  EXPECT_EQ(s.get(endless).result_ttl_s, -1);
  EXPECT_FALSE(s.get(plain).result_ttl_s.has_value());
}

TEST_F(Results, one_that_is_kept_for_no_time_is_not_stored) {
  const std::uint64_t before = s.pool_use("blocks");
  const std::string large = '"' + std::string(60'000, 'x') + '"';
  const std::string id = done(kept_for(0), large);
  EXPECT_EQ(s.pool_use("blocks"), before);
  EXPECT_TRUE(s.get(id).result_pruned);
  EXPECT_EQ(s.get(id).state, State::kCompleted);
  const std::string other = s.put(kept_for(0));
  Proxy proxy = Proxy::attach(s.segment).value();
  ASSERT_EQ(proxy.fetch({})->front().id, other);
  ASSERT_TRUE(proxy.ack(other, 0, large).ok());
  EXPECT_EQ(s.pool_use("blocks"), before);
  done(kept_for(1), large);
  EXPECT_GT(s.pool_use("blocks"), before);
}

TEST_F(Results, a_failed_job_keeps_what_is_known_of_its_end) {
  const std::string id = s.put(kept_for(0));
  ASSERT_EQ(s.take(), id);
  ASSERT_TRUE(s.worker.nack(s.job, failure(false)).ok());
  EXPECT_FALSE(s.get(id).result_pruned);
  EXPECT_EQ(s.get(id).errors.size(), 1U);
}

TEST_F(Results, it_stands_among_the_jobs_members_whichever_way_it_came) {
  const std::string merged = s.put(kept_for(5, R"({"tags":["x"],"result_ttl":9})"));
  EXPECT_EQ(s.get(merged).extra, R"({"tags":["x"],"result_ttl":5})");
  JobSpec written = spec_of();
  written.extra = R"({"result_ttl":9})";
  EXPECT_EQ(s.get(s.put(written)).result_ttl_s, 9);
  const JobSpec two[] = {kept_for(1), spec_of()};
  const auto ids = s.producer.enqueue_batch(two).value();
  EXPECT_EQ(s.get(ids[0].view()).result_ttl_s, 1);
  EXPECT_FALSE(s.get(ids[1].view()).result_ttl_s.has_value());
  const EnqueueOptions patient{.block_timeout = std::chrono::milliseconds(1)};
  EXPECT_EQ(s.get(s.producer.enqueue(kept_for(2), patient)->view()).result_ttl_s, 2);
  auto waiting = s.producer.begin(std::span(two), patient).value();
  EXPECT_EQ(s.get(waiting.poll()->value().front().view()).result_ttl_s, 1);
  const auto envelope = parse_envelope(print_envelope(kept_for(3, R"({"a":1})")), 0);
  ASSERT_TRUE(envelope.ok());
  EXPECT_NE(envelope->extra.find(R"("a":1,"result_ttl":3})"), std::string::npos) << envelope->extra;
}

TEST_F(Results, what_is_no_time_is_refused_by_name) {
  for (const std::int64_t seconds : {std::int64_t{-2}, std::int64_t{3'153'600'001}}) {
    const auto refused = s.producer.enqueue(kept_for(seconds));
    ASSERT_EQ(refused.code(), Code::kInvalid) << seconds;
    EXPECT_EQ(refused.error().subject, "result_ttl");
    EXPECT_EQ(refused.error().bound, 3'153'600'000U);
  }
  EXPECT_TRUE(s.producer.enqueue(kept_for(3'153'600'000)).ok());
  for (const char* extra : {R"({"result_ttl":"1h"})", R"({"result_ttl":-2})",
                            R"({"result_ttl":1.5})", R"({"result_ttl":null})"}) {
    JobSpec spec = spec_of();
    spec.extra = extra;
    EXPECT_EQ(s.producer.enqueue(spec).error().subject, "result_ttl") << extra;
  }
  const auto no_place = s.producer.enqueue(kept_for(1, "[1]"));
  ASSERT_EQ(no_place.code(), Code::kInvalid);
  EXPECT_EQ(no_place.error().message, "result_ttl is kept in extra, which must be a JSON object");
  const JobSpec two[] = {spec_of(), kept_for(-2)};
  EXPECT_EQ(s.producer.enqueue_batch(two).code(), Code::kInvalid);
  EXPECT_EQ(s.queue().depth, 1U);
}

TEST_F(Results, crons_give_it_to_their_jobs) {
  ASSERT_TRUE(s.admin.set_cron({.name = "c", .expression = "@daily", .job = kept_for(4)}).ok());
  EXPECT_EQ(s.observer.crons().front().job.extra, R"({"result_ttl":4})");
  ASSERT_TRUE(s.admin.trigger_cron("c").ok());
  ASSERT_NE(s.take(), "");
  EXPECT_EQ(s.job.extra(), R"({"result_ttl":4})");
}

TEST_F(Results, an_export_takes_it_along_and_leaves_out_what_is_kept_no_longer) {
  const std::string kept = done(kept_for(60)), over = done(kept_for(1));
  s.move_clock(kSecond);
  QuietSegment to;
  to.stop_clock();
  to.move_clock(kMinute / 2);
  Import import = Import::attach(to.segment).value();
  ASSERT_TRUE(
      export_segment(s.segment, [&](std::string_view line) { return import.take(line); }).ok());
  // A client's own member of that name, from before it meant anything.
  ASSERT_TRUE(import
                  .take(R"({"job":{"type":"a","id":"01961234-5678-7abc-8def-0123456789ab",)"
                        R"("extra":{"result_ttl":"1h"}}})")
                  .ok());
  ASSERT_TRUE(import.finish().ok());
  EXPECT_EQ(to.get(kept).result, "7");
  EXPECT_EQ(to.get(kept).result_expires_at_ms, s.get(kept).result_expires_at_ms);
  EXPECT_TRUE(to.get(over).result_pruned);
  EXPECT_FALSE(to.get(kNever).result_ttl_s.has_value());
}

// ---- workflows ----------------------------------------------------------------------------------

WorkflowSpec chain_of(std::int64_t seconds) {
  WorkflowSpec chain, part;
  chain.kind = WorkflowKind::kChain;
  part.job = kept_for(seconds);
  chain.steps = {part, part};
  return chain;
}

TEST_F(Results, those_of_a_workflow_are_kept_until_it_ends) {
  for (const std::int64_t seconds : {0, 60}) {
    const std::string workflow = s.producer.create_workflow(chain_of(seconds)).value();
    const std::string first = s.take();
    ASSERT_TRUE(s.worker.ack(s.job, "7").ok());
    s.move_clock(kHour);
    EXPECT_EQ(s.get(first).result, "7") << "others may want it";
    EXPECT_EQ(s.get(first).result_expires_at_ms, 0U);
    const std::string second = s.take();
    EXPECT_EQ(s.job.parent_results(), "[7]");
    EXPECT_EQ(s.get(second).parent_results, "[7]");
    ASSERT_TRUE(s.worker.ack(s.job, "8").ok());
    EXPECT_TRUE(s.get(first).result_pruned) << "it was over long ago";
    EXPECT_EQ(s.get(second).result, seconds == 0 ? "" : "8");
    EXPECT_EQ(s.observer.workflow(workflow)->root.steps[0].result, "");
    s.move_clock(kMinute);
    EXPECT_TRUE(s.get(second).result_pruned);
  }
}

TEST_F(Results, those_of_a_workflow_that_a_client_ends_are_kept_as_well) {
  Proxy proxy = Proxy::attach(s.segment).value();
  ASSERT_TRUE(s.producer.create_workflow(chain_of(0)).ok());
  const std::string first = proxy.fetch({})->front().id;
  ASSERT_TRUE(proxy.ack(first, 0, "7").ok());
  EXPECT_EQ(proxy.fetch({})->front().parent_results, "[7]");
}

// ---- envelopes ----------------------------------------------------------------------------------

TEST_F(Results, an_envelope_says_it_at_the_top_or_among_its_options) {
  for (const char* text : {R"({"type":"a","args":[],"result_ttl":60})",
                           R"({"type":"a","args":[],"options":{"result_ttl":60}})"}) {
    const auto envelope = parse_envelope(text, 0);
    ASSERT_TRUE(envelope.ok()) << text;
    EXPECT_EQ(envelope->extra, R"({"result_ttl":60})");
    EXPECT_TRUE(envelope->unknown.empty());
  }
  for (const char* value : {"-2", "1.5", "\"1h\"", "3153600001", "99999999999999999999", "true"}) {
    const auto refused =
        parse_envelope(R"({"type":"a","args":[],"result_ttl":)" + std::string(value) + "}", 0);
    ASSERT_FALSE(refused.ok()) << value;
    EXPECT_EQ(refused.error().subject, "result_ttl");
  }
}

TEST_F(Results, a_job_as_clients_see_it_says_what_is_known_of_its_result) {
  JobInfo job = s.get(done(kept_for(60)));
  const std::string kept = print_job(job);
  EXPECT_NE(kept.find(R"("result":7,"result_stored_at":")"), std::string::npos) << kept;
  EXPECT_NE(kept.find(R"("result_size_bytes":1,"result_expires_at":")"), std::string::npos);
  EXPECT_NE(kept.find(R"("result_ttl":60)"), std::string::npos);
  EXPECT_EQ(kept.find("pruned"), std::string::npos);
  s.move_clock(kMinute);
  const std::string pruned = print_job(s.get(job.id));
  EXPECT_NE(pruned.find(R"("result_pruned":true,"result_expires_at":")"), std::string::npos);
  EXPECT_EQ(pruned.find(R"("result":)"), std::string::npos) << pruned;
  EXPECT_EQ(pruned.find("stored_at"), std::string::npos) << pruned;
  const auto again = parse_envelope(kept, 0);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->extra.find("stored_at"), std::string::npos) << "the system's own members";
}

}  // namespace
}  // namespace ojs_shm::test
