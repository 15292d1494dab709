// SPDX-License-Identifier: Apache-2.0
// Batches over several queues.

#include <stdexcept>

#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

JobSpec in(std::string_view queue, std::string_view args = "[1]") {
  JobSpec spec = spec_of(args);
  spec.queue = queue;
  return spec;
}

/// Two for each queue, by turns, and one that waits for its time.
std::vector<JobSpec> spread(Hands& hands) {
  std::vector<JobSpec> specs{in("default"), in("other"), in("default"), in("other"), in("other")};
  specs.back().scheduled_at_ms = hands.handle->store().now_ms() + 3'600'000;
  return specs;
}

void full(Hands& hands, BackpressureStrategy strategy) {
  hands.put(2, "other");
  hands.put(3, "other");
  must(hands.admin->set_queue("other", {.max_depth = 3, .strategy = strategy}));
}

void must_be_refused(Hands& hands, const std::vector<JobSpec>& specs, Code code) {
  if (hands.producer->enqueue_batch(specs).code() != code)
    throw std::runtime_error("it was not refused");
}

}  // namespace

std::vector<Operation> spread_operations() {
  static const JobUnique replace =
      must(JobUnique::of(spec_of(), R"({"keys":["args"],"on_conflict":"replace"})"));
  const auto unique = [](std::string_view queue) {
    JobSpec spec = in(queue);
    spec.unique = &replace;
    return spec;
  };
  return {
      all_or_none({"spread_batch", [](Hands& h) { h.put(); },
                   [](Hands& h) { must(h.producer->enqueue_batch(spread(h))); }}),
      all_or_none({"spread_batch_into_bounded_queues",
                   [](Hands& h) {
                     must(h.admin->set_queue("default", {.max_depth = 10}));
                     must(h.admin->set_queue("other", {.max_depth = 10, .tenant_max_depth = 5}));
                     must(h.admin->set_events(true));
                   },
                   [](Hands& h) { must(h.producer->enqueue_batch(spread(h))); }}),
      all_or_none({"spread_batch_refused",
                   [](Hands& h) {
                     must(h.admin->set_queue("default", {.max_depth = 10}));
                     full(h, BackpressureStrategy::kReject);
                   },
                   [](Hands& h) { must_be_refused(h, spread(h), Code::kQueueFull); }}),
      all_or_none({"spread_batch_drops",
                   [](Hands& h) {
                     h.put();
                     must(h.admin->set_queue(
                         "default",
                         {.max_depth = 2, .strategy = BackpressureStrategy::kDropOldest}));
                     full(h, BackpressureStrategy::kDropOldest);
                     must(h.admin->set_events(true));
                   },
                   [](Hands& h) { must(h.producer->enqueue_batch(spread(h))); }}),
      all_or_none({"spread_batch_drops_in_vain",
                   [](Hands& h) {
                     h.put();
                     h.put();
                     must(h.admin->set_queue(
                         "default",
                         {.max_depth = 2, .strategy = BackpressureStrategy::kDropOldest}));
                     full(h, BackpressureStrategy::kReject);
                   },
                   [](Hands& h) { must_be_refused(h, spread(h), Code::kQueueFull); }}),
      all_or_none({"spread_batch_replaces",
                   [unique](Hands& h) {
                     h.put(unique("default"));
                     h.put(2, "other");
                   },
                   [unique](Hands& h) {
                     const std::vector<JobSpec> specs{in("default"), unique("other"), in("other")};
                     must(h.producer->enqueue_batch(specs));
                   }}),
      all_or_none({"spread_batch_replaces_one_at_work",
                   [unique](Hands& h) {
                     h.put(unique("default"));
                     h.take(h.job);
                   },
                   [unique](Hands& h) {
                     const std::vector<JobSpec> specs{in("default"), unique("other")};
                     must(h.producer->enqueue_batch(specs));
                   }}),
      all_or_none({"spread_batch_waits", [](Hands& h) { full(h, BackpressureStrategy::kBlock); },
                   [](Hands& h) {
                     const std::vector<JobSpec> specs{in("default"), in("other"), in("other")};
                     WaitingEnqueue waiting =
                         must(h.producer->begin(specs, {.block_timeout = std::chrono::minutes(1)}));
                     if (const auto early = waiting.poll())
                       throw std::runtime_error(early->ok() ? "it found room"
                                                            : early->error().message);
                     Worker worker = must(Worker::attach(h.segment, {.queues = {"other"}}));
                     Job job;
                     must(worker.try_fetch(job));
                     const auto decided = waiting.poll();
                     if (!decided || !decided->ok()) throw std::runtime_error("it was not let in");
                   }}),
      all_or_none({"spread_batch_too_many", [](Hands&) {},
                   [](Hands& h) {
                     std::vector<JobSpec> specs(96, in("default"));
                     specs.push_back(in("other"));
                     must_be_refused(h, specs, Code::kSegmentFull);
                   }}),
  };
}

}  // namespace ojs_shm::test
