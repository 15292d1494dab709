// SPDX-License-Identifier: Apache-2.0
//
// A load on a server over loopback: one thread, many connections, on each one request at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace ojs_shm::bench {

/// What one connection says and expects.
class Dialogue {
 public:
  virtual ~Dialogue() = default;
  /// The next request; valid until the call after it.
  virtual std::string_view next() = 0;
  /// How long the answer is that `bytes` begin with; 0 while it is not all there. Throws when it is
  /// not the one that was expected.
  virtual std::size_t answer(std::string_view bytes) = 0;
};
using Dialogues = std::vector<std::unique_ptr<Dialogue>>;

struct LoadResult {
  double seconds = 0;
  std::vector<double> waits_us;  ///< of each answer; of a paced load from when it was due
};

/// Sends so many requests, a multiple of the connections, over a connection for each dialogue, each
/// as many. `per_second`: when they are due; 0: as fast as the answers come. Throws when a
/// connection or an answer fails.
LoadResult drive(std::uint16_t port, Dialogues& dialogues, std::uint64_t requests,
                 double per_second = 0);

/// A port of loopback that is free for now.
std::uint16_t free_port();
/// A stream to the port of loopback, without delay. Throws when no process listens.
int connect_to(std::uint16_t port);

}  // namespace ojs_shm::bench
