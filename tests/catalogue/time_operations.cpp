// SPDX-License-Identifier: Apache-2.0
// Jobs that end by themselves.

#include <stdexcept>

#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

JobSpec timed() {
  JobSpec spec = spec_of();
  spec.enqueue_ttl_s = 1'800;
  spec.total_timeout_s = 7'200;
  spec.grace_period_s = 60;
  spec.retry.max_attempts = 5;
  spec.retry.dead_letter = true;
  return spec;
}

constexpr std::uint64_t kHour = 3'600'000;

Failure boom() {
  Failure failed;
  failed.code = "boom";
  return failed;
}

/// A job that has failed once and waits for its next attempt.
void failed_once(Hands& hands) {
  JobSpec spec = timed();
  spec.retry.initial_ms = 2 * static_cast<std::uint32_t>(kHour) - 60'000;
  spec.retry.max_ms = spec.retry.initial_ms;
  spec.retry.jitter = false;
  hands.put(spec);
  hands.take(hands.job);
  must(hands.worker->nack(hands.job, boom()));
}

}  // namespace

std::vector<Operation> time_operations() {
  return {
      {"timed_enqueue", [](Hands&) {}, [](Hands& h) { h.put(timed()); }},
      {"timed_ttl_ends_a_pending_job",
       [](Hands& h) {
         JobSpec spec = timed();
         spec.pending = true;
         h.put(spec);
         h.tick();
         h.move_clock(kHour);
       },
       [](Hands& h) { h.tick(); }},
      {"timed_total_ends_an_attempt",
       [](Hands& h) {
         h.put(timed());
         h.take(h.job);
         must(h.worker->heartbeat(h.job, static_cast<std::uint32_t>(10 * kHour)));
         h.tick();
         h.move_clock(3 * kHour);
       },
       [](Hands& h) { h.tick(); }},
      {"timed_total_ends_a_job_between_its_attempts",
       [](Hands& h) {
         failed_once(h);
         h.tick();
         h.move_clock(2 * kHour + 60'000);
       },
       [](Hands& h) { h.tick(); }},
      {"timed_nack_comes_too_late",
       [](Hands& h) {
         JobSpec spec = timed();
         spec.retry.initial_ms = spec.retry.max_ms = 3 * static_cast<std::uint32_t>(kHour);
         spec.retry.jitter = false;
         h.put(spec);
         h.take(h.job);
       },
       [](Hands& h) { must(h.worker->nack(h.job, boom())); }},
  };
}

}  // namespace ojs_shm::test
