// SPDX-License-Identifier: Apache-2.0
// Sleepers and who wakes them.

#include <poll.h>
#include <sys/eventfd.h>

#include <stdexcept>
#include <thread>

#include <ojs_shm/proxy.hpp>

#include "engine/tables/job_look.hpp"
#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

/// Until the bell of a worker says that there is work.
void hear(int bell) {
  pollfd rung{bell, POLLIN, 0};
  if (::poll(&rung, 1, 60'000) != 1) throw std::runtime_error("the bell was not rung");
}

void hush(int bell) {
  eventfd_t count = 0;
  ::eventfd_read(bell, &count);
}

bool somebody_sleeps(Hands& hands) {
  const engine::Store& store = hands.handle->store();
  for (const shm::Word& word : store.queue(hands.handle->actor().ensure_queue("default")).waiters)
    if (word.load() != 0) return true;
  return false;
}

void ring_and_hush(Hands& hands) {
  const int bell = must(hands.worker->event_fd());
  hear(bell);
  hands.take(hands.job);
  must(hands.worker->ack(hands.job));
  hands.put();
  hear(bell);
  hands.take(hands.job);
  hands.worker.reset();  // with its bell
}

bool somebody_listens(Hands& hands) {
  for (const shm::Word& word : hands.handle->store().header().listeners)
    if (word.load() != 0) return true;
  return false;
}

/// The end of a job that a proxy awaits, while others tell events to it. The bell rings once when
/// it begins; then its thread lies down, in each run, for nothing else happens until it has.
void listen_for_an_end(Hands& hands) {
  Proxy proxy = must(Proxy::attach(hands.segment));
  const int bell = must(proxy.await_end(hands.id));
  hear(bell);
  hush(bell);
  while (!somebody_listens(hands)) std::this_thread::yield();
  if (must(proxy.await_events()) != bell) throw std::runtime_error("it has two descriptors");
  hands.take(hands.job);
  must(hands.worker->ack(hands.job));
  for (std::vector<std::string> ended; ended.empty(); ended = proxy.take_ended()) {
    hear(bell);
    hush(bell);
  }
}

}  // namespace

const std::vector<Operation>& operations_of_threads() {
  static const std::vector<Operation> all = {
      {"event_fd", [](Hands& h) { h.put(); }, ring_and_hush},
      {"listen",
       [](Hands& h) {
         must(h.admin->set_events(true));
         h.put();
       },
       listen_for_an_end},
      {"interrupt_a_sleeper", [](Hands& h) { (void)h.handle->actor().ensure_queue("default"); },
       [](Hands& h) {
         std::thread interrupting([&h] {
           while (!somebody_sleeps(h)) std::this_thread::yield();
           h.worker->interrupt();
         });
         const Status slept = h.worker->fetch(h.job, std::chrono::minutes(1));
         interrupting.join();
         if (slept.code() != Code::kClosed)
           throw std::runtime_error("an interrupted worker slept on");
       }},
      {"wait_for_what_another_finishes",
       [](Hands& h) {
         h.put();
         h.take(h.job);
       },
       [](Hands& h) {
         const engine::Store& store = h.handle->store();
         const engine::JobRecord& job =
             store.job(engine::find_job(store, engine::parse_id(h.id).value()));
         std::thread finishing([&] {
           while ((job.signals.load() & engine::kWaited) == 0) std::this_thread::yield();
           must(h.worker->ack(h.job, "{}"));
         });
         const Result<JobInfo> finished = h.producer->wait(h.id, std::chrono::minutes(1));
         finishing.join();
         if (!finished || finished->state != State::kCompleted)
           throw std::runtime_error("it waited in vain");
       }},
  };
  return all;
}

}  // namespace ojs_shm::test
