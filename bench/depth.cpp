// SPDX-License-Identifier: Apache-2.0
//
// What a long backlog costs: one in, one out, above a thousand and above a million waiting jobs.
#include "bench/one_thread.hpp"
#include "bench/peers/all.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

template <Peer P>
void add_for() {
  const std::string peer = P::kName;
  const std::vector<unsigned char> order = levels_in_turn(5);
  add_benchmark("depth_thousand/" + peer,
                [=](benchmark::State& state) { in_and_out<P>(state, {.waiting = 1'000}, order); });
  add_benchmark("depth_million/" + peer, [=](benchmark::State& state) {
    in_and_out<P>(state, {.waiting = 1'000'000}, order);
  });
}

}  // namespace

void add_depth() {
  add_for<OjsShm>();
#if defined(OJS_SHM_BENCH_TBB)
  add_for<TbbPriorityQueue>();
#endif
}

}  // namespace ojs_shm::bench
