// SPDX-License-Identifier: Apache-2.0
#include "tests/catalogue/operations.hpp"

#include <iterator>
#include <utility>

namespace ojs_shm::test {

// A file each, NAME_operations.cpp.
std::vector<Operation> job_operations();
std::vector<Operation> plain_operations();
std::vector<Operation> report_operations();
std::vector<Operation> upkeep_operations();
std::vector<Operation> spread_operations();
std::vector<Operation> time_operations();
std::vector<Operation> id_operations();
std::vector<Operation> full_queue_operations();
std::vector<Operation> bounded_tenant_operations();
std::vector<Operation> order_operations();
std::vector<Operation> pool_operations();
std::vector<Operation> limit_operations();
std::vector<Operation> workflow_operations();
std::vector<Operation> unique_operations();
std::vector<Operation> cron_operations();
std::vector<Operation> removal_operations();
std::vector<Operation> worker_operations();

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"plain jobs", plain_operations, "schedules_test.cpp"},
      {"jobs", job_operations, "schedules_test.cpp"},
      {"batches over several queues", spread_operations, "spread_test.cpp"},
      {"jobs that end by themselves", time_operations, "schedules_test.cpp"},
      {"reports", report_operations, "schedules_test.cpp"},
      {"settings, imports and events", upkeep_operations, "schedules_test.cpp"},
      {"ids", id_operations, "schedules_test.cpp"},
      {"full queues", full_queue_operations, "backpressure_test.cpp"},
      {"bounded tenants", bounded_tenant_operations, "backpressure_test.cpp"},
      {"order in a queue", order_operations, "shards_test.cpp"},
      {"pools", pool_operations, "schedules_test.cpp"},
      {"limits", limit_operations, "measures_test.cpp"},
      {"workflows", workflow_operations, "workflows_test.cpp"},
      {"unique jobs", unique_operations, "unique_test.cpp"},
      {"crons", cron_operations, "crons_test.cpp"},
      {"removals", removal_operations, "no order of their own: each job goes as by a cancel"},
      {"registered workers", worker_operations, "workers_test.cpp"},
  };
  return all;
}

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> made;
    for (const Family& family : families()) {
      std::vector<Operation> some = family.operations();
      std::move(some.begin(), some.end(), std::back_inserter(made));
    }
    return made;
  }();
  return all;
}

}  // namespace ojs_shm::test
