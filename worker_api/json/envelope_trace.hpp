// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/job.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/workflow.hpp>

#include "worker_api/simulation/simulation.hpp"

/// The lines of a trace, docs/simulation.md. A line is an object with one member, whose name says
/// what it tells of; the first line is the head. Pure functions; thread-safe.
namespace ojs_shm {

struct TraceHead {
  std::string convention, segment;
  std::uint64_t begun_at_ms = 0;
};

/// {"ojs_shm_trace":1,"convention":"ojs",...}
std::string print_trace_head(const TraceHead& head);
/// One line: {"arrival":{"at_ms":12,"job":"...","queue":"default","priority":2,"type":"mail",...}}
/// `after`: the jobs that it comes after, in place of the arrival's own member.
std::string print_trace_arrival(std::string_view job, const TraceArrival& arrival,
                                std::span<const std::string> after = {});
/// {"service":{"job":"...","ms":15}}
std::string print_trace_service(std::string_view job, double ms);

/// {"workflow":{"id":"...","kind":"chain","name":"..."}}: some of the arrivals name it.
std::string print_trace_workflow(const WorkflowInfo& workflow);

/// {"pool":{"name":"web","workers":3,"concurrency":1,"settings":{"queues":["a","b"],...}}}
std::string print_trace_pool(const SimulatedPool& pool);

/// Reads a trace line by line. Of a pool that is told of several times the last settings hold, and
/// the most workers. The services of a job, one for each attempt, add up; a job without any gets
/// the mean of those of its type, or of all, or what `finish` is told.
class TraceReader {
 public:
  /// Errors: kInvalid; kOtherFormat for a head of another version.
  Status take(std::string_view line);
  /// The arrivals by time, from 0 on. A job that another comes after, and that did not arrive, is
  /// left out there.
  Trace finish(std::int64_t otherwise_us);

 private:
  struct Mean {
    double sum = 0, count = 0;
  };
  Status take_pool(std::string_view object);
  void sort_arrivals();

  bool headed_ = false;
  std::string convention_ = "ojs";
  std::vector<TraceArrival> arrivals_;
  std::vector<SimulatedPool> pools_;
  std::vector<std::string> jobs_;
  std::vector<std::vector<std::string>> after_;  ///< jobs
  std::map<std::string, double, std::less<>> services_us_;
};

}  // namespace ojs_shm
