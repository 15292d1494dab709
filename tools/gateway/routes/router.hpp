// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/serving/desk.hpp"
#include "tools/gateway/serving/tokens.hpp"
#include "tools/gateway/serving/visit.hpp"

namespace ojs_shm::gateway {

/// Answers at once; may throw a Fault.
using Handler = Reply (*)(Desk&, const Request&);
/// May wait without a thread.
using Waiter = boost::asio::awaitable<Reply> (*)(Desk&, const Request&, Visit&);
/// Sends server-sent events, or talks through a WebSocket, until the client or the gateway goes.
using Streamer = boost::asio::awaitable<void> (*)(Desk&, const Request&, Visit&);

enum class Pace : std::uint8_t {
  kQuick,  ///< microseconds: on the thread of its connection
  kSlow,   ///< walks over the segment: on a thread of its own, one such request after the other
};

/// The shapes of a route's bodies; empty: it has none.
struct Bodies {
  std::string_view takes = {}, gives = {};
  std::string_view also = {};  ///< the status of a refusal that may have the same body
};

struct Route {
  std::string_view method;
  /// {..} stands for one name, {id} for the id of a job or a workflow, which comes in lower case.
  std::string_view path;
  Scope scope = Scope::kNone;
  std::variant<Handler, Waiter, Streamer> handler;
  Bodies bodies = {};
  Pace pace = Pace::kQuick;
  bool test_hook = false;  ///< there only with --test-hooks
  bool file = false;       ///< of the dashboard, not of the API
  bool upgrades = false;   ///< to a WebSocket
};

/// All endpoints.
class Router {
 public:
  explicit Router(bool test_hooks);

  /// The route of a request, whose `names` it fills; throws a Fault when there is none.
  const Route& find(Request& request) const;
  std::span<const Route> routes() const { return routes_; }

 private:
  struct Pattern {
    std::vector<std::string_view> parts;
    const Route* route;
  };
  std::vector<Route> routes_;
  std::unordered_map<std::string_view, std::vector<const Route*>> exact_;
  std::vector<Pattern> patterns_;
};

/// What every request must fulfil before its handler sees it: version, content type, token. Throws
/// a Fault.
void admit(const Request& request, const Route& route, const Tokens& tokens);
/// The content type that the client gets.
std::string_view negotiated_type(std::string_view accept);
/// Whether the client takes a body that gzip packed: what its Accept-Encoding says of gzip, else of
/// every coding. Source: RFC 9110, 12.5.3.
bool takes_gzip(std::string_view accept_encoding);
/// Path and query of a request's target, decoded. Throws a Fault.
void read_target(std::string_view target, Request& request);

}  // namespace ojs_shm::gateway
