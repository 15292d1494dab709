// SPDX-License-Identifier: Apache-2.0
// Full queues: dropping, waiting, warning; and queues whose tenants are bounded.

#include <poll.h>
#include <sys/eventfd.h>

#include <optional>
#include <stdexcept>
#include <vector>

#include <ojs_shm/proxy.hpp>

#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

JobSpec of_tenant(std::string_view tenant, std::string_view args = "[1]") {
  JobSpec spec = spec_of(args);
  spec.tenant = tenant;
  return spec;
}

}  // namespace

std::vector<Operation> bounded_tenant_operations() {
  const auto bound = [](Hands& h, BackpressureStrategy strategy = BackpressureStrategy::kReject) {
    must(h.admin->set_queue("default", {.strategy = strategy, .tenant_max_depth = 2}));
  };
  return {
      {"bounded_tenant_comes_and_goes", [bound](Hands& h) { bound(h); },
       [](Hands& h) {
         h.put(of_tenant("a"));
         h.put(of_tenant("a"));
         if (h.producer->enqueue(of_tenant("a")).code() != Code::kQueueFull)
           throw std::runtime_error("the bound was passed");
         h.put(of_tenant("b"));
         Job job;
         h.take(job);
         must(h.worker->nack(job, {}));
         must(h.producer->cancel(h.id));
       }},
      {"bounded_tenants_batch",
       [bound](Hands& h) {
         bound(h);
         h.put(of_tenant("a"));
       },
       [](Hands& h) {
         const std::vector<JobSpec> fits{of_tenant("a"), of_tenant("b"), of_tenant("c")};
         must(h.producer->enqueue_batch(fits));
         if (h.producer->enqueue_batch(fits).code() != Code::kQueueFull)
           throw std::runtime_error("the bound was passed");
       }},
      {"bounded_tenant_drops",
       [bound](Hands& h) {
         bound(h, BackpressureStrategy::kDropOldest);
         for (const char* tenant : {"a", "b", "a", "b"}) h.put(of_tenant(tenant));
       },
       [](Hands& h) {
         const std::vector<JobSpec> specs{of_tenant("a"), of_tenant("b"), of_tenant("a")};
         must(h.producer->enqueue_batch(specs));
       }},
      {"bounded_tenant_takes_an_account",
       [bound](Hands& h) {
         bound(h);
         for (int i = 0; i < 100; ++i) {
           h.put(of_tenant("t" + std::to_string(i)));
           h.take(h.job);
           must(h.worker->ack(h.job));
         }
       },
       [](Hands& h) {
         h.put(of_tenant("new"));
         h.put(of_tenant("newer"));
       }},
      {"tenants_are_bounded",
       [](Hands& h) {
         for (const char* tenant : {"a", "b", "a"}) h.put(of_tenant(tenant));
         h.take(h.job);
       },
       [bound](Hands& h) { bound(h); }},
      {"bounded_tenant_waits",
       [bound](Hands& h) {
         bound(h, BackpressureStrategy::kBlock);
         h.put(of_tenant("a"));
         h.put(of_tenant("a"));
       },
       [](Hands& h) {
         const JobSpec a = of_tenant("a"), b = of_tenant("b");
         const EnqueueOptions patience{.block_timeout = std::chrono::minutes(1)};
         WaitingEnqueue first = must(h.producer->begin(std::span(&a, 1), patience));
         WaitingEnqueue passes = must(h.producer->begin(std::span(&b, 1), patience));
         if (first.poll() || !passes.poll()) throw std::runtime_error("a tenant held up another");
         Job job;
         must(h.worker->try_fetch(job));
         const auto admitted = first.poll();
         if (!admitted || !admitted->ok()) throw std::runtime_error("the first was not let in");
       }},
  };
}

std::vector<Operation> full_queue_operations() {
  return {
      {"enqueue_drops",
       [](Hands& h) {
         for (const int priority : {2, 2, 5}) h.put(priority);
         must(h.admin->set_queue("default",
                                 {.max_depth = 3, .strategy = BackpressureStrategy::kDropOldest}));
       },
       [](Hands& h) { h.put(); }},
      all_or_none({"enqueue_batch_drops",
                   [](Hands& h) {
                     const std::string args = "[\"" + std::string(300, 'b') + "\"]";
                     JobSpec spec = spec_of(args);
                     for (int i = 0; i < 4; ++i) h.put(spec);
                     must(h.admin->set_queue(
                         "default",
                         {.max_depth = 5, .strategy = BackpressureStrategy::kDropOldest}));
                     must(h.admin->set_events(true));
                   },
                   [](Hands& h) {
                     const std::vector<JobSpec> specs(3, spec_of());
                     must(h.producer->enqueue_batch(specs));
                   }}),
      {"enqueue_drops_too_little",
       [](Hands& h) {
         JobSpec later = spec_of();
         later.scheduled_at_ms = h.handle->store().now_ms() + 3'600'000;
         h.put(later);
         h.put();
         must(h.admin->set_queue("default",
                                 {.max_depth = 2, .strategy = BackpressureStrategy::kDropOldest}));
       },
       [](Hands& h) {
         const std::vector<JobSpec> specs(2, spec_of());
         if (h.producer->enqueue_batch(specs).code() != Code::kQueueFull)
           throw std::runtime_error("a scheduled job was dropped");
       }},
      {"enqueue_waits",
       [](Hands& h) {
         must(h.admin->set_queue("default",
                                 {.max_depth = 1, .strategy = BackpressureStrategy::kBlock}));
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
      {"enqueue_waits_on_a_descriptor",
       [](Hands& h) {
         must(h.admin->set_queue("default",
                                 {.max_depth = 1, .strategy = BackpressureStrategy::kBlock}));
         h.put();
       },
       [](Hands& h) {
         Proxy proxy = must(Proxy::attach(h.segment));
         pollfd bell{must(proxy.descriptor()), POLLIN, 0};
         const JobSpec spec = spec_of();
         const EnqueueOptions patience{.block_timeout = std::chrono::minutes(1)};
         WaitingEnqueue first = must(proxy.begin_enqueue(std::span(&spec, 1), patience, 1));
         std::optional<WaitingEnqueue> gone =
             must(proxy.begin_enqueue(std::span(&spec, 1), patience, 2));
         WaitingEnqueue last = must(proxy.begin_enqueue(std::span(&spec, 1), patience, 3));
         gone.reset();
         for (const std::uint64_t tag : {std::uint64_t{1}, std::uint64_t{3}}) {
           h.take(h.job);
           must(h.worker->ack(h.job));
           std::vector<std::uint64_t> decided;
           for (int looks = 0; decided.empty() && looks < 600; ++looks) {
             eventfd_t count = 0;
             if (::poll(&bell, 1, 60'000) == 1) ::eventfd_read(bell.fd, &count);
             decided = proxy.take_decided();
           }
           if (decided != std::vector{tag})
             throw std::runtime_error("not the one whose turn it is");
         }
         for (WaitingEnqueue* each : {&first, &last}) {
           const auto admitted = each->poll();
           if (!admitted || !admitted->ok()) throw std::runtime_error("it was not let in");
         }
       },
       "waits for room that others may take"},
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
         must(h.admin->set_queue("default",
                                 {.max_depth = 5, .strategy = BackpressureStrategy::kBlock}));
       }},
  };
}

}  // namespace ojs_shm::test
