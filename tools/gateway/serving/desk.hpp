// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/proxy.hpp>

namespace ojs_shm::gateway {

class Hall;

/// The handles of one thread: one thread at a time may use a handle, and requests never wait for
/// those of other threads.
struct Desk {
  Hall& hall;
  Admin admin;
  Proxy proxy;
  Observer observer;

  Producer& producer() { return admin.producer(); }
  std::uint64_t now_ms() const { return proxy.now_ms(); }

  static Desk open(Hall& hall, const Segment& segment);
};

}  // namespace ojs_shm::gateway
