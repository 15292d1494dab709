// SPDX-License-Identifier: Apache-2.0
//
// What the number of priorities costs, in one thread. Filled: every level holds jobs. Sparse: each
// job comes alone to a level that was empty, and leaves it empty.
#include "bench/one_thread.hpp"
#include "bench/peers/all.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

template <Peer P>
void add_for(const std::string& peer) {
  for (const unsigned levels : {5U, 256U}) {
    const std::string suffix = std::to_string(levels) + "/" + peer;
    const Plan filled{.levels = levels, .waiting = 4096};
    add_benchmark("levels_filled_" + suffix, [=](benchmark::State& state) {
      in_then_out<P>(state, filled, levels_scattered(levels));
    });
    const Plan sparse{.levels = levels};
    add_benchmark("levels_sparse_" + suffix, [=](benchmark::State& state) {
      in_and_out<P>(state, sparse, levels_scattered(levels));
    });
  }
}

}  // namespace

void add_levels() {
  add_for<OjsShm>(OjsShm::kName);
  add_for<BoostMessageQueue>(BoostMessageQueue::kName);
}

}  // namespace ojs_shm::bench
