// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/serving/desk.hpp"
#include "tools/gateway/serving/visit.hpp"
#include "tools/gateway/streams/tape.hpp"

namespace ojs_shm::gateway {

/// The channels that the client of a WebSocket has subscribed to, `job:ID`, `queue:NAME` and `all`,
/// and what is said in them. Source: ojs-realtime 3.
class Channels {
 public:
  static constexpr std::size_t kMost = 1'000;

  /// Of what the filter lets pass.
  Channels(Desk& desk, EventFilter filter) : desk_(desk), filter_(std::move(filter)) {}

  /// What the client gets back for its message.
  std::vector<std::string> answer(std::string_view message);
  /// Adds what the event becomes: a message for each channel that it belongs to.
  void tell(const Told& told, std::vector<std::string>& messages) const;

 private:
  std::vector<std::string> subscribe(std::string channel);
  /// As it is known here, which is an id in lower case. Throws a Fault.
  std::string known(std::string channel) const;

  Desk& desk_;
  EventFilter filter_;
  std::unordered_set<std::string> channels_;
};

/// Makes a WebSocket of the connection and talks with its client until it or the gateway goes.
/// Throws a Fault when the request is none for a WebSocket.
boost::asio::awaitable<void> talk_in_channels(Desk& desk, const Request& request, Visit& visit,
                                              EventFilter filter);

}  // namespace ojs_shm::gateway
