// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/page/browser.hpp"

#include <spdlog/fmt/fmt.h>

#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>
#include <string>

#include "tools/gateway/routes/fault.hpp"

namespace ojs_shm::gateway {
namespace {

/// "a:80" -> "a", "[::1]:80" -> "::1".
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

bool names_this_machine(std::string_view host) {
  const std::string_view name = without_port(host);
  // The names of strangers' sites have a dot.
  if (name.find_first_of(".:") == std::string_view::npos) return true;
  boost::system::error_code failed;
  boost::asio::ip::make_address(std::string(name), failed);
  return !failed;
}

Fault forbidden(std::string message, std::string hint) {
  Fault fault{.status = 403, .code = "forbidden"};
  fault.message = std::move(message);
  fault.hint = std::move(hint);
  return fault;
}

}  // namespace

void admit_page(const Request& request, bool loopback_alone) {
  const std::string_view host = request.header("host");
  if (loopback_alone && !host.empty() && !names_this_machine(host))
    throw forbidden(
        fmt::format("this gateway serves its own machine, and does not answer to the name {}",
                    host.substr(0, 128)),
        "Use an address or localhost, or start the gateway with --token-file or --open.");
  const bool only_reads = request.method == "GET" || request.method == "HEAD";
  if (only_reads && request.header("upgrade").empty()) return;
  std::string_view origin = request.header("origin");
  if (origin.empty()) return;
  const std::size_t scheme = origin.find("://");
  if (scheme != std::string_view::npos && boost::beast::iequals(origin.substr(scheme + 3), host))
    return;
  throw forbidden(fmt::format("a page of {} may not {} here", origin.substr(0, 128),
                              only_reads ? "open a WebSocket" : "change anything"),
                  "A proxy before the gateway must hand on the Host that the browser sent.");
}

}  // namespace ojs_shm::gateway
