// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/gateway/routes/exchange.hpp"

namespace ojs_shm::gateway {

/// What keeps pages of other origins from a gateway that asks for no token. Throws a Fault.
/// A browser names the page's origin with each request that may change something, and with each for
/// a WebSocket, which any page could read; it must be the gateway's own. `loopback_alone` says that
/// the gateway is meant for this machine: then the host must be an address or a name without a dot,
/// since any other may have been pointed here by a stranger.
void admit_page(const Request& request, bool loopback_alone);

}  // namespace ojs_shm::gateway
