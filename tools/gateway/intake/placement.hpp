// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/serving/desk.hpp"
#include "tools/gateway/serving/visit.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::gateway {

/// What became of a job: it is stored, or one of its unique key was there already.
struct Placed {
  JobIdText id;
  bool there = false;
};

struct Accepted {
  std::vector<Placed> jobs;
  std::optional<QueuePressure> pressure;  ///< of their queue, above its warning threshold
};

/// What the envelope must fulfil here, and its tenant. Throws a Fault.
void admit(Desk& desk, const Request& request, Envelope& envelope);
/// Of a body that was checked. Throws a Fault.
Envelope read_one_of_many(Desk& desk, const Request& request, std::string_view text);

/// Jobs of any queues, all or none, for which there is room now. `places`: where they are in the
/// request; empty: they are all its jobs. Throws a Fault, which names the place of a refused job.
Accepted put_at_once(Desk& desk, const std::vector<JobSpec>& specs,
                     std::span<const Envelope> envelopes, std::span<const std::size_t> places = {});
/// The same, for which it waits so long. Throws a Fault.
boost::asio::awaitable<Accepted> put(Desk& desk, const std::vector<JobSpec>& specs,
                                     std::span<const Envelope> envelopes,
                                     std::chrono::milliseconds patience, Visit& visit,
                                     std::span<const std::size_t> places = {});
/// The job, as the reply to its enqueue has it. Its state; empty: it is gone.
std::string_view append_placed(std::string& out, Desk& desk, const Envelope& envelope,
                               const Placed& placed);

}  // namespace ojs_shm::gateway
