// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ojs_shm::gateway {

/// Where to listen: HOST:PORT, with [..] around an IPv6 address, or unix:PATH.
struct Address {
  std::string host;
  std::uint16_t port = 0;  ///< 0: a free one is chosen
  std::string path;        ///< of a Unix socket; then the other members say nothing

  bool is_unix() const { return !path.empty(); }
};

/// Throws shell::Refusal.
Address parse_address(std::string_view text);

}  // namespace ojs_shm::gateway
