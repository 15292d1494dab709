// SPDX-License-Identifier: Apache-2.0
//
// One function for each topology; each adds its benchmarks as `topology/peer`.
#pragma once

namespace ojs_shm::bench {

void add_limits();           ///< A bare cache line and back.
void add_one_to_one();       ///< One producer, one worker, as fast as they can.
void add_one_way_latency();  ///< One job at a time, to a spinning and to a sleeping worker.
void add_one_thread();       ///< Enqueue, fetch, ack in one thread.
void add_levels();           ///< 256 priorities against 5.
void add_depth();            ///< A million waiting jobs against a thousand.
void add_two_and_two();      ///< Two producers and two workers on two cores.
void add_orders();           ///< A fetch from five filled levels, in each order there is.
/// One in, one out through a pool, by strategies and numbers of queues.
void add_pools();
/// A fetch among tenants, and in front of jobs that a limit holds back.
void add_fairness();
void add_observing();  ///< What waits and events add to a job.
void add_sampling();   ///< What a look of ojs-shm-top costs.
void add_workflows();  ///< What a chain costs beside as many plain jobs.
void add_unique();     ///< What a unique key adds to an enqueue.
void add_http();       ///< The gateway, beside Redis, beanstalkd and a bare Beast server.
void add_memory();     ///< Bytes of segment for a job and for an idle queue.

}  // namespace ojs_shm::bench
