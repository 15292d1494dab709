// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/serving/desk.hpp"
#include "tools/gateway/serving/visit.hpp"
#include "tools/gateway/streams/tape.hpp"

namespace ojs_shm::gateway {

/// A stream of one job: it ends when the job has.
struct JobStream {
  std::string job;
  /// The piece of an event, and of the job's end where the tape does not have that.
  std::function<std::string(Desk&, const Told&)> tell;
  std::function<std::string(Desk&, const JobInfo&)> tell_end;
};

/// The id of the event that tells the end of a job that had ended when the client came.
std::string id_of_end(const std::string& job);
/// An event as a piece of a stream.
std::string piece_of(const Told& told);
std::string piece_of(std::string_view id, std::string_view type, std::string_view data);

/// Sends the events that the filter lets pass, until the client or the gateway goes, or the job
/// ends.
boost::asio::awaitable<void> follow(Desk& desk, const Request& request, Visit& visit,
                                    EventFilter filter, std::optional<JobStream> of = {});

}  // namespace ojs_shm::gateway
