// SPDX-License-Identifier: Apache-2.0
// Jobs from their enqueue to their end, and what a process does beside.

#include "engine/tables/hint_lives.hpp"
#include "engine/tables/job_look.hpp"
#include "shm/ring_splice.hpp"
#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

void nothing(Hands&) {}
void tick(Hands& hands) { hands.tick(); }

void work_off_one(Hands& hands) {
  hands.put();
  hands.take(hands.job);
  must(hands.worker->ack(hands.job));
}

constexpr const char* kTakesAllChunks = "leaves none to others until it has died or closed";

/// Leaves no chunk, but thirty batches of one finished job each, and the ring of priority 9 with a
/// full chunk.
void leave_no_chunk(Hands& hands) {
  for (int i = 0; i < 30; ++i) {
    hands.put();
    Worker worker = must(Worker::attach(hands.segment, {}));
    must(worker.try_fetch(hands.job));
    must(worker.ack(hands.job));
  }
  for (int i = 0; i < 14; ++i) hands.put(9);
  while (hands.handle->actor().rings().chunks().take() != shm::kNoIndex) {}
}

}  // namespace

std::vector<Operation> job_operations() {
  auto put_one = [](Hands& h) { h.put(); };
  auto hold_one = [](Hands& h) {
    h.put();
    h.take(h.job);
  };
  auto dead_letter = [](Hands& h) {
    JobSpec spec = spec_of();
    spec.retry.max_attempts = 1;
    spec.retry.dead_letter = true;
    spec.id = "01961234-5678-7abc-8def-0123456789ab";
    h.put(spec);
    h.take(h.job);
    must(h.worker->nack(h.job, failure()));
  };
  auto fourteen = [](Hands& h) {
    for (int i = 0; i < 14; ++i) h.put();
  };
  return {
      {"enqueue", nothing, [](Hands& h) { h.put(); }},
      {"enqueue_second", put_one, [](Hands& h) { h.put(); }},
      {"enqueue_large_body", nothing, [](Hands& h) { h.put(spec_of(big_args(3000))); }},
      {"enqueue_scheduled", nothing,
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.scheduled_at_ms = h.handle->store().now_ms() + 3'600'000;
         h.put(spec);
       }},
      {"enqueue_expiring", nothing,
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.expires_at_ms = h.handle->store().now_ms() + 3'600'000;
         h.put(spec);
       }},
      {"enqueue_pending", nothing,
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.pending = true;
         h.put(spec);
       }},
      {"enqueue_bounded",
       [](Hands& h) {
         must(h.admin->set_queue("default", {10, 4096, {}}));
       },
       [](Hands& h) { h.put(); }},
      {"enqueue_far_from_bound",  // by a lane that knows what is there: the straight way
       [](Hands& h) {
         must(h.admin->set_queue("default", {10, 4096, {}}));
         h.put(), h.put();
       },
       [](Hands& h) { h.put(); }},
      {"enqueue_refused",
       [](Hands& h) {
         must(h.admin->set_queue("default", {1, {}, {}}));
         h.put();
       },
       [](Hands& h) {
         if (h.producer->enqueue(spec_of()).code() != Code::kQueueFull)
           throw std::runtime_error("the bound was passed");
       }},
      {"enqueue_new_queue", nothing, [](Hands& h) { h.put(2, "other"); }},
      {"enqueue_new_chunk", fourteen, [](Hands& h) { h.put(); }},
      {"enqueue_recycles",
       [](Hands& h) {
         for (int i = 0; i < 96; ++i) {
           h.put();
           h.take(h.job);
           must(h.worker->ack(h.job, "{}"));
         }
       },
       [](Hands& h) {
         for (int i = 0; i < 16; ++i) h.put();
       }},
      all_or_none({"enqueue_batch", put_one,
                   [](Hands& h) {
                     const std::vector<JobSpec> specs(5, spec_of());
                     must(h.producer->enqueue_batch(specs));
                   }}),
      {"enqueue_prepared", put_one,
       [](Hands& h) {
         const PreparedJob kind = must(h.producer->prepare(spec_of()));
         must(h.producer->enqueue(kind, "[7]"));
       }},
      all_or_none({"enqueue_prepared_batch", fourteen,  // over the end of a chunk
                   [](Hands& h) {
                     const PreparedJob kind = must(h.producer->prepare(spec_of()));
                     std::vector<PreparedArgs> jobs(5);
                     jobs[2].priority = 9;
                     std::vector<JobIdText> ids(jobs.size());
                     must(h.producer->enqueue_batch(kind, jobs, ids));
                   }}),
      all_or_none({"enqueue_batch_bounded",
                   [](Hands& h) {
                     must(h.admin->set_queue("default", {10, {}, {}}));
                   },
                   [](Hands& h) {
                     const std::string args = big_args(300);
                     const std::vector<JobSpec> specs(5, spec_of(args));
                     must(h.producer->enqueue_batch(specs));
                   }}),
      {"enqueue_batch_refused",
       [](Hands& h) {
         must(h.admin->set_queue("default", {4, {}, {}}));
       },
       [](Hands& h) {
         const std::vector<JobSpec> specs(5, spec_of());
         if (h.producer->enqueue_batch(specs).code() != Code::kQueueFull)
           throw std::runtime_error("the bound was passed");
       }},
      {"enqueue_batch_too_many", nothing,
       [](Hands& h) {
         const std::vector<JobSpec> specs(97, spec_of());
         if (h.producer->enqueue_batch(specs).code() != Code::kSegmentFull)
           throw std::runtime_error("more jobs than slots");
       }},
      {"enqueue_without_chunks", leave_no_chunk, [](Hands& h) { h.put(9); }, kTakesAllChunks},
      all_or_none({"enqueue_batch_without_chunks", leave_no_chunk,
                   [](Hands& h) {
                     JobSpec spec = spec_of();
                     spec.priority = 9;
                     const std::vector<JobSpec> specs(3, spec);
                     must(h.producer->enqueue_batch(specs));
                   },
                   kTakesAllChunks}),
      {"fetch", put_one, [](Hands& h) { h.take(h.job); }},
      {"fetch_of_a_second_attempt",
       [](Hands& h) {
         h.put(9);
         h.put(9);
         h.take(h.job);
         must(h.worker->nack(h.job, failure()));
         h.move_clock(3'600'000);
         h.tick();
         h.take(h.job);  // what it keeps of this one is not of the next
         must(h.worker->ack(h.job));
       },
       [](Hands& h) { h.take(h.job); }},
      {"fetch_leaves_chunk",
       [fourteen](Hands& h) {
         fourteen(h);
         h.put();
         for (int i = 0; i < 14; ++i) {
           h.take(h.job);
           must(h.worker->ack(h.job));
         }
       },
       [](Hands& h) {
         h.take(h.job);
         (void)h.worker->try_fetch(h.job);
       }},
      {"fetch_past_many_levels",
       [](Hands& h) {
         for (int priority = 10; priority < 20; ++priority) {
           h.put(priority);
           h.take(h.job);
           must(h.worker->ack(h.job));
         }
         h.put(200);
       },
       [](Hands& h) { h.take(h.job); }},
      {"fetch_lease_owned", put_one,
       [](Hands& h) {
         Worker worker = must(Worker::attach(
             h.segment,
             {.queues = {"default"}, .lease_ms = 50, .spin_us = 0, .lease_owned = true}));
         must(worker.try_fetch(h.job));
       }},
      {"ack_batch",
       [](Hands& h) {
         for (int i = 0; i < 3; ++i) h.put();
       },
       [](Hands& h) {
         std::vector<Job> jobs = must(h.worker->fetch_batch(3));
         if (must(h.worker->ack_batch(jobs)).acked != 3) throw std::runtime_error("not all acked");
       }},
      {"fetch_batch",
       [](Hands& h) {
         work_off_one(h);  // so that the worker knows the queue, and goes the straight way
         for (int i = 0; i < 3; ++i) h.put();
       },
       [](Hands& h) {
         if (must(h.worker->fetch_batch(4, std::chrono::milliseconds(1))).size() != 3)
           throw std::runtime_error("not all that waited");
       }},
      {"fetch_expired",
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.expires_at_ms = h.handle->store().now_ms() + 1000;
         h.put(spec);
         h.move_clock(5000);
       },
       [](Hands& h) { (void)h.worker->try_fetch(h.job); }},
      {"ack", hold_one, [](Hands& h) { must(h.worker->ack(h.job)); }},
      {"ack_result", hold_one, [](Hands& h) { must(h.worker->ack(h.job, big_args(600))); }},
      {"ack_result_without_room",
       [](Hands& h) {
         h.put();
         h.take(h.job);
         const std::string args = big_args(8000);
         for (int i = 0; i < 96 && h.producer->enqueue(spec_of(args)); ++i) {
         }  // until no block is left
       },
       [](Hands& h) { (void)h.worker->ack(h.job, big_args(8000)); }},
      {"ack_fills_batch",
       [](Hands& h) {
         for (int i = 0; i < 13; ++i) {
           h.put();
           h.take(h.job);
           must(h.worker->ack(h.job));
         }
         h.put();
         h.take(h.job);
       },
       [](Hands& h) { must(h.worker->ack(h.job)); }},
      {"nack", hold_one, [](Hands& h) { must(h.worker->nack(h.job, failure())); }},
      {"nack_bounded",
       [hold_one](Hands& h) {
         must(h.admin->set_queue("default", {10, {}, {}}));
         hold_one(h);
       },
       [](Hands& h) { must(h.worker->nack(h.job, failure())); }},
      {"nack_final", hold_one, [](Hands& h) { must(h.worker->nack(h.job, failure(false))); }},
      {"nack_dead_letter",
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.retry.max_attempts = 1;
         spec.retry.dead_letter = true;
         h.put(spec);
         h.take(h.job);
       },
       [](Hands& h) { must(h.worker->nack(h.job, failure())); }},
      {"requeue", hold_one, [](Hands& h) { must(h.worker->requeue(h.job)); }},
      {"requeue_fetch_front",
       [](Hands& h) {
         h.put();
         h.put();
         h.take(h.job);
         must(h.worker->requeue(h.job));
       },
       [](Hands& h) { h.take(h.job); }},
      {"heartbeat", hold_one, [](Hands& h) { must(h.worker->heartbeat(h.job, 1000)); }},
      {"progress",
       [hold_one](Hands& h) {  // with a lease that a report does not move, however late it comes
         hold_one(h);
         must(h.worker->heartbeat(h.job, 7'200'000));
       },
       [](Hands& h) { must(h.worker->progress(h.job, 0.5)); }},
      {"cancel_available", put_one, [](Hands& h) { must(h.producer->cancel(h.id)); }},
      {"cancel_active", hold_one, [](Hands& h) { must(h.producer->cancel(h.id)); }},
      {"cancel_pending",
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.pending = true;
         h.put(spec);
       },
       [](Hands& h) { must(h.producer->cancel(h.id)); }},
      {"activate",
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.pending = true;
         h.put(spec);
       },
       [](Hands& h) { must(h.producer->activate(h.id)); }},
      {"promote",
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.scheduled_at_ms = ~0ULL >> 2;
         h.put(spec);
       },
       [](Hands& h) { must(h.producer->promote(h.id)); }},
      {"bulk_cancel", put_one, [](Hands& h) { must(h.admin->bulk(BulkAction::kCancel, {})); }, "",
       true},
      {"reprioritize", put_one, [](Hands& h) { must(h.producer->reprioritize(h.id, 0)); }},
      {"reprioritize_then_fetch", put_one,
       [](Hands& h) {
         must(h.producer->reprioritize(h.id, 77));
         h.take(h.job);
       }},
      {"fetch_helps_a_move",
       [](Hands& h) {  // somebody's move to 0 stands between its two steps
         h.put();
         engine::Store& store = h.handle->store();
         const std::uint32_t slot = engine::find_job(store, engine::parse_id(h.id).value());
         const engine::JobRecord& job = store.job(slot);
         shm::Rings& rings = h.handle->actor().rings();
         shm::RingSet& set = store.rings_of(job);
         const unsigned ring = engine::normal_ring(0);
         const shm::Hint hint(slot, engine::Control(job.control.load()).moved_to(ring).tag(),
                              shm::Hint::kHintFirst);
         if (!rings.push(rings.ensure(set, ring), hint, &set, ring))
           throw std::runtime_error("no room for a hint");
       },
       [](Hands& h) { h.take(h.job); }},
      {"reprioritize_scheduled",
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.scheduled_at_ms = h.handle->store().now_ms() + 3'600'000;
         h.put(spec);
       },
       [](Hands& h) { must(h.producer->reprioritize(h.id, 0)); }},
      {"retry_dead", dead_letter, [](Hands& h) { must(h.admin->retry_dead(h.id)); }},
      {"retry_discarded",
       [hold_one](Hands& h) {
         hold_one(h);
         must(h.worker->nack(h.job, failure(false)));
       },
       [](Hands& h) { must(h.producer->retry(h.id)); }},
      {"retry_cancelled",
       [](Hands& h) {
         h.put();
         must(h.producer->cancel(h.id));
       },
       [](Hands& h) { must(h.producer->retry(h.id)); }},
      {"drop_dead", dead_letter, [](Hands& h) { must(h.admin->drop_dead(h.id)); }},
      {"drop_completed",
       [hold_one](Hands& h) {
         hold_one(h);
         must(h.worker->ack(h.job, "\"" + std::string(600, 'r') + '"'));
       },
       [](Hands& h) { must(h.admin->drop(h.id)); }},
      {"retry_dead_refused",
       [hold_one](Hands& h) {
         hold_one(h);
         must(h.worker->nack(h.job, failure(false)));
       },
       [](Hands& h) {
         if (h.admin->retry_dead(h.id).code() != Code::kWrongState)
           throw std::runtime_error("no dead letter, and retried");
       }},
      {"ack_wakes_waiter",
       [hold_one](Hands& h) {
         hold_one(h);
         (void)h.producer->wait(h.id, std::chrono::milliseconds(0));
       },
       [](Hands& h) { must(h.worker->ack(h.job)); }},
      {"close_worker",
       [](Hands& h) {
         for (int i = 0; i < 90; ++i) h.put();
         for (int i = 0; i < 89; ++i) {
           h.take(h.job);
           must(h.worker->ack(h.job));
         }
         h.take(h.job);
       },
       [](Hands& h) { h.worker.reset(); }},
      {"promote_due",
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.scheduled_at_ms = h.handle->store().now_ms() + 1000;
         h.put(spec);
         h.move_clock(5000);
       },
       tick},
      {"expire_due",
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.expires_at_ms = h.handle->store().now_ms() + 1000;
         h.put(spec);
         h.move_clock(5000);
       },
       tick},
      {"end_lease",
       [](Hands& h) {
         h.put();
         h.take(h.job);
         must(h.worker->heartbeat(h.job, 100));
         h.move_clock(5000);
       },
       tick},
      {"end_run",
       [](Hands& h) {
         JobSpec spec = spec_of();
         spec.timeout_ms = 100;
         h.put(spec);
         h.take(h.job);
         h.move_clock(5000);
       },
       tick},
      {"wait_flag", put_one,
       [](Hands& h) {
         must(h.producer->cancel(h.id));
         (void)h.producer->wait(h.id, std::chrono::milliseconds(0));
       }},
      {"wait_times_out", put_one,
       [](Hands& h) {
         if (h.producer->wait(h.id, std::chrono::milliseconds(5)).code() != Code::kTimeout)
           throw std::runtime_error("it waited for something else");
       }},
      {"wake_listener",
       [](Hands& h) {
         must(h.admin->set_events(true));
         engine::EngineHeader& header = h.handle->store().header();
         header.listeners[h.handle->lane() / 64].fetch_or(1ULL << (h.handle->lane() % 64),
                                                          shm::Point::kWaiterSet);
         header.telling.fetch_or(engine::kListened, shm::Point::kWaiterSet);
       },
       [](Hands& h) { h.put(); }},
      {"wake_sleeper",
       [](Hands& h) {
         engine::QueueRecord& queue =
             h.handle->store().queue(h.handle->actor().ensure_queue("default"));
         queue.waiters[h.handle->lane() / 64].fetch_or(1ULL << (h.handle->lane() % 64),
                                                       shm::Point::kWaiterSet);
       },
       [](Hands& h) { h.put(); }},
      {"fetch_times_out", [](Hands& h) { h.handle->actor().ensure_queue("default"); },
       [](Hands& h) { (void)h.worker->fetch(h.job, std::chrono::milliseconds(1)); }},
      {"interrupt", put_one,
       [](Hands& h) {
         h.worker->interrupt();
         if (h.worker->fetch(h.job, std::chrono::minutes(1)).code() != Code::kClosed)
           throw std::runtime_error("an interrupted worker fetched");
       }},
      {"pack_rings",
       [](Hands& h) {
         h.put(9);
         for (int i = 0; i < 80; ++i) {
           const std::string id = h.put(9);
           must(h.producer->cancel(id));
         }
         h.put(9);
       },
       [](Hands& h) {
         engine::QueueRecord& queue = h.handle->store().queue(0);
         const std::uint32_t ring = shm::Rings::find(queue.rings, engine::normal_ring(9));
         shm::Stretch stretch;
         shm::splice(h.handle->actor().rings(), ring, engine::any_lives, stretch);
         if (stretch.freed < 3) throw std::runtime_error("nothing packed");
       }},
      {"finish_another",
       [](Hands& h) {
         h.handle->store().header().retention_ms = 3'600'000;
         for (int i = 0; i < 2; ++i) h.put();
         h.take(h.job);
         must(h.worker->ack(h.job));
         h.take(h.job);
       },
       [](Hands& h) {  // the first is published, and then its batch is filled further
         Job none;
         (void)h.worker->fetch(none, std::chrono::milliseconds(0));
         must(h.worker->ack(h.job));
         (void)h.worker->fetch(none, std::chrono::milliseconds(0));
       }},
      {"mend", put_one, [](Hands& h) { h.handle->actor().mend(); }},
      {"attach_and_close", nothing,
       [](Hands& h) {
         Producer producer = must(Producer::attach(h.segment));
         must(producer.enqueue(spec_of()));
         Worker worker = must(Worker::attach(h.segment, {}));
         must(worker.try_fetch(h.job));
       }},
      {"attach_process", nothing,
       [](Hands& h) {
         const Segment again = must(Segment::attach(h.segment.attachment()->name()));
         Producer producer = must(Producer::attach(again));
       }},
  };
}

}  // namespace ojs_shm::test
