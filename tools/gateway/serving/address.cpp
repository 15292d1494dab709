// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/serving/address.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>

#include "tools/shell/refusal.hpp"

namespace ojs_shm::gateway {

Address parse_address(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  if (text.starts_with(kUnix)) {
    Address address;
    address.path = text.substr(kUnix.size());
    if (address.path.empty() || address.path.size() > 107)
      shell::refuse(Code::kInvalid,
                    fmt::format("--listen: '{}' must name a path of 1 to 107 bytes", text));
    return address;
  }
  const std::size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  Address address{std::string(host), 0, {}};
  const std::string_view port = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const auto read = std::from_chars(port.data(), port.data() + port.size(), address.port);
  const bool whole = read.ec == std::errc{} && read.ptr == port.data() + port.size();
  if (host.empty() || !whole)
    shell::refuse(
        Code::kInvalid,
        fmt::format("--listen: '{}' is not HOST:PORT or unix:PATH; 127.0.0.1:8080 is one", text));
  return address;
}

}  // namespace ojs_shm::gateway
