// SPDX-License-Identifier: Apache-2.0
//
// The field: ourselves, the floor, and the queues people would use instead. What is not installed
// is left out.
#pragma once

#include "bench/peers/bare_word.hpp"
#include "bench/peers/boost_message_queue.hpp"
#include "bench/peers/five_rings.hpp"
#include "bench/peers/moodycamel_queues.hpp"
#include "bench/peers/ojs_shm.hpp"
#include "bench/peers/posix_mq.hpp"
#include "bench/peers/rings_and_slots.hpp"
#include "bench/peers/server_process.hpp"
#if defined(OJS_SHM_BENCH_TBB)
#include "bench/peers/tbb_priority_queue.hpp"
#endif
#if defined(OJS_SHM_BENCH_HIREDIS)
#include "bench/peers/redis.hpp"
#endif
#if defined(OJS_SHM_BENCH_ZMQ)
#include "bench/peers/zeromq.hpp"
#endif
#include "bench/peers/beanstalkd.hpp"

namespace ojs_shm::bench {

/// Calls `visit.operator()<P>()` for every peer that can run here. The floor stands next to us, so
/// that the two sides of the most important ratio are measured one right after the other.
template <class Visit>
void for_each_peer(Visit visit) {
  visit.template operator()<FiveRings>();
  visit.template operator()<OjsShm>();
  visit.template operator()<BoostMessageQueue>();
  visit.template operator()<PosixMq>();
  visit.template operator()<MoodycamelQueues>();
#if defined(OJS_SHM_BENCH_TBB)
  visit.template operator()<TbbPriorityQueue>();
#endif
#if defined(OJS_SHM_BENCH_ZMQ)
  visit.template operator()<ZeroMq>();
#endif
  if (is_installed("beanstalkd")) visit.template operator()<Beanstalkd>();
#if defined(OJS_SHM_BENCH_HIREDIS)
  if (is_installed("redis-server")) {
    visit.template operator()<RedisSortedSet>();
    visit.template operator()<RedisLists>();
  }
#endif
}

}  // namespace ojs_shm::bench
