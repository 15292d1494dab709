// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tools/metrics/page.hpp"

namespace ojs_shm::exporter {

struct Address {
  std::string host;
  std::uint16_t port = 0;  ///< 0: a free one is chosen
};

/// HOST:PORT, with [..] around an IPv6 address. Throws shell::Refusal.
Address parse_address(std::string_view text);

/// Answers GET /metrics with the page of that moment, one request after the other, until SIGTERM or
/// SIGINT. `ready` is told the URL once requests are accepted. Throws shell::Refusal when the
/// address cannot be had.
void serve(const Address& address, const std::function<metrics::Page()>& collect,
           const std::function<void(const std::string& url)>& ready);

}  // namespace ojs_shm::exporter
