// SPDX-License-Identifier: Apache-2.0
//
// What every queue in this comparison can do, seen by a producer and a worker.
//
// A peer object is made by the parent before the parts start: it creates the shared memory, the
// names or the server. Each part then makes its own Producer or Worker from it, after the fork. The
// peer's destructor removes whatever it created.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ojs_shm::bench {

/// 64 bytes of args, a JSON array with one string; the first eight letters carry a number that the
/// worker checks.
struct Body {
  char bytes[64];
};

/// Letters A to P, one for each four bits of `number`: cheap enough not to be what is measured.
inline void write_number(Body& body, std::uint32_t number) {
  std::uint64_t x = number;
  x = (x | x << 16) & 0x0000FFFF0000FFFFULL;
  x = (x | x << 8) & 0x00FF00FF00FF00FFULL;
  x = (x | x << 4) & 0x0F0F0F0F0F0F0F0FULL;
  x += 0x4141414141414141ULL;
  std::memcpy(body.bytes + 2, &x, sizeof x);
}

inline std::uint32_t read_number(const Body& body) {
  std::uint64_t x = 0;
  std::memcpy(&x, body.bytes + 2, sizeof x);
  x -= 0x4141414141414141ULL;
  x = (x | x >> 4) & 0x00FF00FF00FF00FFULL;
  x = (x | x >> 8) & 0x0000FFFF0000FFFFULL;
  return static_cast<std::uint32_t>(x | x >> 16);
}

inline Body blank_body() {
  Body body;
  std::memset(body.bytes, 'x', sizeof body.bytes);
  std::memcpy(body.bytes, "[\"", 2);
  std::memcpy(body.bytes + sizeof body.bytes - 2, "\"]", 2);
  return body;
}

/// What a run asks of a peer.
struct Plan {
  unsigned levels = 5;  ///< Priorities in use, 0 is served first.
  /// The most jobs that the run leaves waiting at one time, beyond what a full ring holds.
  std::size_t waiting = 0;
  /// Give the queue a depth bound; only for a peer that can do without.
  bool bounded = false;
  std::string settings = {};  ///< Of our own queue, as JSON; nothing for the defaults.
  std::uint32_t tenants = 0;  ///< With jobs waiting at one level, of our own queue.
};

/// How a peer is best asked for the next job while there is plenty.
enum class Taking { kPolling, kBlocking };

/// What every job goes through; it decides how many of them a run moves, and which topologies are
/// of any use.
enum class Pace {
  kShared,   ///< memory alone
  kKernel,   ///< a lock or a system call
  kNetwork,  ///< background threads and a socket, in batches
  kServer,   ///< a request to a server and its answer
};

using Patience = std::chrono::milliseconds;

template <class P>
concept Peer = std::constructible_from<P, const Plan&> &&
    requires(typename P::Producer& producer, typename P::Worker& worker, const Body& body,
             Body& out) {
  { P::kName } -> std::convertible_to<const char*>;
  { P::kInProcess } -> std::convertible_to<bool>;
  { P::kTaking } -> std::convertible_to<Taking>;
  { P::kPace } -> std::convertible_to<Pace>;
  producer.enqueue(0U, body);                  // waits while the queue is full
  { worker.poll(out) } -> std::same_as<bool>;  // one look, never sleeps
  // the job last taken is done; nothing where the peer has no such thing
  worker.ack();
};

/// A peer whose worker can sleep until a job comes.
template <class P>
concept ParkingPeer = Peer<P> && requires(typename P::Worker& worker, Body& out) {
  { worker.receive(out, Patience{1000}) } -> std::same_as<bool>;  // false when nothing came in time
};

}  // namespace ojs_shm::bench
