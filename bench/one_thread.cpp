// SPDX-License-Identifier: Apache-2.0
#include "bench/one_thread.hpp"

#include "bench/peers/all.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

void add_one_thread() {
  const std::vector<unsigned char> order = levels_in_turn(5);
  for_each_peer([&]<Peer P>() {
    const std::string peer = P::kName;
    add_benchmark("one_thread/" + peer,
                  [order](benchmark::State& state) { in_and_out<P>(state, Plan{}, order); });
    // A server's backlog costs it nothing, and POSIX mq gives an unprivileged user room for ten
    // messages.
    if constexpr (P::kPace != Pace::kServer && P::kPace != Pace::kNetwork &&
                  !std::same_as<P, PosixMq>) {
      const Plan many{.waiting = 4000};
      add_benchmark("one_thread_4000_waiting/" + peer,
                    [=](benchmark::State& state) { in_and_out<P>(state, many, order); });
      add_benchmark("one_thread_4000_in_then_out/" + peer,
                    [=](benchmark::State& state) { in_then_out<P>(state, many, order); });
    }
  });
}

}  // namespace ojs_shm::bench
