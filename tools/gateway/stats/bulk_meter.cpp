// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/stats/bulk_meter.hpp"

namespace ojs_shm::gateway {
namespace {

using prometheus::Histogram;

const Histogram::BucketBoundaries kSeconds = {0.0001, 0.0003, 0.001, 0.003, 0.01,
                                              0.03,   0.1,    0.3,   1,     3};
const Histogram::BucketBoundaries kSizes = {1, 3, 10, 30, 100, 300, 1000, 3000, 10000};

}  // namespace

BulkMeter::BulkMeter()
    : requests_(prometheus::BuildCounter()
                    .Name("ojs_bulk_requests_total")
                    .Help("Requests about many jobs, of this gateway.")
                    .Register(registry_)),
      items_(prometheus::BuildCounter()
                 .Name("ojs_bulk_items_total")
                 .Help("Jobs of such requests, by what became of them.")
                 .Register(registry_)),
      seconds_(prometheus::BuildHistogram()
                   .Name("ojs_bulk_duration_seconds")
                   .Help("How long such a request took.")
                   .Register(registry_)),
      sizes_(prometheus::BuildHistogram()
                 .Name("ojs_bulk_batch_size")
                 .Help("Jobs of such a request.")
                 .Register(registry_)) {}

void BulkMeter::count(std::string_view operation, bool atomic,
                      const std::map<std::string_view, std::size_t>& items,
                      std::chrono::steady_clock::duration took) {
  const std::string name(operation);
  const prometheus::Labels both = {{"operation", name},
                                   {"atomicity", atomic ? "atomic" : "partial"}};
  requests_.Add(both).Increment();
  std::size_t size = 0;
  for (const auto& [status, count] : items) {
    size += count;
    items_.Add({{"operation", name}, {"status", std::string(status)}})
        .Increment(static_cast<double>(count));
  }
  seconds_.Add(both, kSeconds).Observe(std::chrono::duration<double>(took).count());
  sizes_.Add({{"operation", name}}, kSizes).Observe(static_cast<double>(size));
}

}  // namespace ojs_shm::gateway
