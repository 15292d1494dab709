// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "tests/crash/operations.hpp"

// Operations on full queues: dropping, waiting, warning.

namespace ojs_shm::test {
namespace {

JobSpec spec_of(std::string_view args = "[1]") {
  JobSpec spec;
  spec.type = "crash.test";
  spec.args = args;
  spec.retry.max_attempts = 20;
  return spec;
}

}  // namespace

std::vector<Operation> with_full_queues(std::vector<Operation> others) {
  const std::vector<Operation> more = {
      {"enqueue_drops",
       [](Hands& h) {
         for (const int priority : {2, 2, 5}) h.put(priority);
         must(h.admin->set_queue("default", {.max_depth = 3, .strategy = BackpressureStrategy::kDropOldest}));
       },
       [](Hands& h) { h.put(); }},
      {"enqueue_batch_drops",
       [](Hands& h) {
         const std::string args = "[\"" + std::string(300, 'b') + "\"]";
         JobSpec spec = spec_of(args);
         for (int i = 0; i < 4; ++i) h.put(spec);
         must(h.admin->set_queue("default", {.max_depth = 5, .strategy = BackpressureStrategy::kDropOldest}));
         must(h.admin->set_events(true));
       },
       [](Hands& h) {
         const std::vector<JobSpec> specs(3, spec_of());
         must(h.producer->enqueue_batch(specs));
       }},
      {"enqueue_drops_too_little",
       [](Hands& h) {
         JobSpec later = spec_of();
         later.scheduled_at_ms = h.handle->store().now_ms() + 3'600'000;
         h.put(later);
         h.put();
         must(h.admin->set_queue("default", {.max_depth = 2, .strategy = BackpressureStrategy::kDropOldest}));
       },
       [](Hands& h) {
         const std::vector<JobSpec> specs(2, spec_of());
         if (h.producer->enqueue_batch(specs).code() != Code::kQueueFull)
           throw std::runtime_error("a scheduled job was dropped");
       }},
      {"enqueue_waits",
       [](Hands& h) {
         must(h.admin->set_queue("default", {.max_depth = 1, .strategy = BackpressureStrategy::kBlock}));
         h.put();
         h.take(h.job);
         h.put();
       },
       [](Hands& h) {
         const JobSpec spec = spec_of();
         const EnqueueOptions patience{.block_timeout = std::chrono::minutes(1)};
         WaitingEnqueue first = must(h.producer->begin(std::span(&spec, 1), patience));
         WaitingEnqueue second = must(h.producer->begin(std::span(&spec, 1), patience));
         if (first.poll() || second.poll()) throw std::runtime_error("the bound was passed");
         Job job;
         must(h.worker->try_fetch(job));
         const auto admitted = first.poll();
         if (!admitted || !admitted->ok()) throw std::runtime_error("the first was not let in");
       }},
      {"enqueue_warns",
       [](Hands& h) {
         must(h.admin->set_queue("default", {.max_depth = 2, .warning_threshold = 0.5}));
         must(h.admin->set_events(true));
         h.put();
       },
       [](Hands& h) {
         h.put();
         if (h.producer->enqueue(spec_of()).code() != Code::kQueueFull)
           throw std::runtime_error("the bound was passed");
         h.move_clock(2000);
         if (h.producer->enqueue(spec_of()).code() != Code::kQueueFull)
           throw std::runtime_error("the bound was passed");
         h.take(h.job);
         Job job;
         must(h.worker->try_fetch(job));
       }},
      {"set_backpressure", [](Hands& h) { h.put(); },
       [](Hands& h) {
         must(h.admin->set_queue("default", {.max_depth = 5, .strategy = BackpressureStrategy::kBlock}));
       }},
  };
  others.insert(others.end(), more.begin(), more.end());
  return others;
}

}  // namespace ojs_shm::test
