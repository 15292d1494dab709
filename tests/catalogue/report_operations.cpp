// SPDX-License-Identifier: Apache-2.0
// Reports of running jobs with texts, for the crash lanes.

#include <ojs_shm/proxy.hpp>

#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

std::string text_of(std::size_t size) { return std::string(size, 't'); }

void hold_one(Hands& hands) {
  hands.put();
  hands.take(hands.job);
}

void hold_reported(Hands& hands) {
  hold_one(hands);
  must(hands.worker->progress(hands.job, 0.5, text_of(600)));
  hands.move_clock(10);  // so that each report makes the lease longer, and the same writes
}

}  // namespace

std::vector<Operation> report_operations() {
  return {
      {"progress_texts", hold_one,
       [](Hands& h) { must(h.worker->progress(h.job, 0.5, text_of(600), "1")); }},
      {"progress_texts_again", hold_reported,
       [](Hands& h) { must(h.worker->progress(h.job, 0.6, text_of(300), "1")); }},
      {"progress_by_id", hold_reported,
       [](Hands& h) { must(must(Proxy::attach(h.segment)).progress(h.id, 0, 0.7, text_of(300))); }},
      {"progress_of_the_next_attempt",
       [](Hands& h) {
         hold_reported(h);
         must(h.worker->nack(h.job, failure()));
         must(h.producer->promote(h.id));
         h.take(h.job);
       },
       [](Hands& h) { must(h.worker->progress(h.job, 0.1)); }},
      {"progress_texts_without_room",
       [](Hands& h) {
         hold_reported(h);
         const std::string args = "[\"" + text_of(8000) + "\"]";
         for (int i = 0; i < 96 && h.producer->enqueue(spec_of(args)); ++i) {}
       },
       [](Hands& h) { (void)h.worker->progress(h.job, 0.6, text_of(8000)); }},
      {"checkpoint", hold_one, [](Hands& h) { must(h.worker->checkpoint(h.job, "{\"row\":7}")); }},
      {"checkpoint_beside_texts", hold_reported,
       [](Hands& h) { must(h.worker->checkpoint(h.job, '"' + text_of(700) + '"')); }},
      {"progress_keeps_a_checkpoint",
       [](Hands& h) {
         hold_one(h);
         must(h.worker->checkpoint(h.job, '"' + text_of(700) + '"'));
         must(h.worker->nack(h.job, failure()));
         must(h.producer->promote(h.id));
         h.take(h.job);
       },
       [](Hands& h) { must(h.worker->progress(h.job, 0.1)); }},
      {"requeue_after_progress", hold_reported, [](Hands& h) { must(h.worker->requeue(h.job)); }},
      {"drop_dead_after_progress",
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.retry.max_attempts = 1;
         spec.retry.dead_letter = true;
         h.put(spec);
         h.take(h.job);
         must(h.worker->progress(h.job, 0.5, text_of(600)));
         must(h.worker->nack(h.job, failure()));
       },
       [](Hands& h) { must(h.admin->drop_dead(h.id)); }},
  };
}

}  // namespace ojs_shm::test
