// SPDX-License-Identifier: Apache-2.0
// Workflows.
#include <string>
#include <utility>

#include <stdexcept>

#include <ojs_shm/transfer.hpp>

#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

WorkflowSpec job_in(std::string_view queue = "default") {
  WorkflowSpec part;
  part.job = spec_of();
  part.job.queue = queue;
  return part;
}

WorkflowSpec whole(WorkflowKind kind, std::vector<WorkflowSpec> steps) {
  WorkflowSpec spec;
  spec.kind = kind;
  spec.steps = std::move(steps);
  return spec;
}

/// A group over two queues, a batch with callbacks, a job at the end.
WorkflowSpec nested() {
  WorkflowSpec batch = whole(WorkflowKind::kBatch, {job_in(), job_in("other")});
  batch.on_complete = {job_in()};
  batch.on_failure = {job_in("other")};
  return whole(WorkflowKind::kChain,
               {whole(WorkflowKind::kGroup, {job_in(), job_in("other")}), batch, job_in()});
}

void create(Hands& hands, const WorkflowSpec& spec) {
  hands.id = must(hands.producer->create_workflow(spec));
}

void work_off(Hands& hands, int jobs) {
  Worker worker = must(Worker::attach(hands.segment, {.queues = {"default", "other"}}));
  for (int i = 0; i < jobs; ++i) {
    must(worker.try_fetch(hands.job));
    must(worker.ack(hands.job, "{\"done\":true}"));
  }
}

void bound(Hands& hands, std::string_view queue, std::uint64_t jobs,
           BackpressureStrategy strategy = BackpressureStrategy::kReject) {
  must(hands.admin->set_queue(queue, {.max_depth = jobs, .strategy = strategy}));
}

void hold_last_of_group(Hands& hands) {
  create(hands, nested());
  work_off(hands, 1);
  hands.worker.emplace(must(Worker::attach(hands.segment, {.queues = {"other"}})));
  hands.take(hands.job);
}

/// What export_segment() tells of a segment, into another one.
void import(Hands& hands) {
  Import import = must(Import::attach(hands.segment));
  must(import.take(R"({"ojs_shm_export":1,"convention":"ojs"})"));
  must(import.take(
      R"({"workflow":{"id":"01961234-5678-7abc-8def-0123456789aa",)"
      R"("tree":{"k":1,"steps":[{"type":"crash.test","queue":"default"},{},{"queue":"other"}]},)"
      R"("sets":[[0],[1],[2]],"result":2,"members":[)"
      R"({"job":{"id":"01961234-5678-7abc-8def-0123456789ab","type":"crash.test","state":"completed",)"
      R"("priority":1,"completed_at":"2026-01-02T00:00:00Z","result":{"kept":true}}},)"
      R"({"waits":0,"job":{"id":"01961234-5678-7abc-8def-0123456789ac","type":"crash.test","priority":1}},)"
      R"({"waits":1,"waiting":true,"job":{"id":"01961234-5678-7abc-8def-0123456789ad",)"
      R"("type":"crash.test","queue":"other","priority":1}}]}})"));
}

}  // namespace

std::vector<Operation> workflow_operations() {
  return {
      all_or_none({"workflow_create", [](Hands& h) { h.put(2, "other"); },
                   [](Hands& h) { create(h, nested()); }}),
      {"workflow_import", [](Hands& h) { h.put(2, "other"); }, [](Hands& h) { import(h); }},
      all_or_none({"workflow_create_bounded",
                   [](Hands& h) {
                     bound(h, "default", 50);
                     bound(h, "other", 50);
                   },
                   [](Hands& h) { create(h, nested()); }}),
      {"workflow_refused",
       [](Hands& h) {
         bound(h, "default", 50);
         bound(h, "other", 1);
         h.put(2, "other");
       },
       [](Hands& h) {
         if (h.producer->create_workflow(nested()))
           throw std::runtime_error("a full queue took a workflow");
       }},
      all_or_none({"workflow_create_scheduled", [](Hands&) {},
                   [](Hands& h) {
                     WorkflowSpec spec = nested();
                     spec.steps[0].steps[0].job.scheduled_at_ms = h.handle->store().now_ms() + 1;
                     spec.steps[2].job.expires_at_ms = h.handle->store().now_ms() + 3'600'000;
                     create(h, spec);
                     h.move_clock(1000);
                     h.tick();
                   }}),
      {"workflow_join", hold_last_of_group,
       [](Hands& h) { must(h.worker->ack(h.job, "{\"last\":1}")); }},
      {"workflow_join_bounded",
       [](Hands& h) {
         bound(h, "default", 2);
         hold_last_of_group(h);
       },
       [](Hands& h) { must(h.worker->ack(h.job, "{\"last\":1}")); }},
      {"workflow_fails", hold_last_of_group,
       [](Hands& h) { must(h.worker->nack(h.job, failure(false))); }},
      {"workflow_ends",
       [](Hands& h) {
         create(h, nested());
         work_off(h, 5);
         h.take(h.job);
       },
       [](Hands& h) { must(h.worker->ack(h.job)); }},
      {"workflow_ends_told",
       [](Hands& h) {
         must(h.admin->set_events(true));
         create(h, whole(WorkflowKind::kGroup, {job_in()}));
         h.take(h.job);
       },
       [](Hands& h) { must(h.worker->ack(h.job)); }},
      {"workflow_cancel",
       [](Hands& h) {
         create(h, nested());
         work_off(h, 1);
       },
       [](Hands& h) { must(h.producer->cancel_workflow(h.id)); }},
      {"workflow_job_cancelled",
       [](Hands& h) {
         create(h, whole(WorkflowKind::kChain, {job_in(), job_in(), job_in()}));
         h.id = h.first({});
       },
       [](Hands& h) { must(h.producer->cancel(h.id)); }},
      {"workflow_job_dropped",
       [](Hands& h) {
         bound(h, "default", 1, BackpressureStrategy::kDropOldest);
         create(h, whole(WorkflowKind::kChain, {job_in(), job_in(), job_in("other")}));
       },
       [](Hands& h) { h.put(); }},
      {"workflow_dead_letter_retried",
       [](Hands& h) {
         WorkflowSpec spec = whole(WorkflowKind::kGroup, {job_in(), job_in("other")});
         spec.steps[0].job.retry.dead_letter = true;
         create(h, spec);
         h.take(h.job);
         h.id = h.job.id();
         must(h.worker->nack(h.job, failure(false)));
       },
       [](Hands& h) { must(h.admin->retry_dead(h.id)); }},
  };
}

}  // namespace ojs_shm::test
