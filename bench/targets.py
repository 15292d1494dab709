# SPDX-License-Identifier: Apache-2.0
"""What the numbers are held against. A target is a ratio of two benchmarks of the same round, or a figure of one."""

from typing import NamedTuple

SPEED = "items_per_second"
COST = "ns_per_job"
ADDED = "added_ns"


class Target(NamedTuple):
    text: str
    ours: str  # benchmark
    peer: str  # benchmark; "": the figure itself is judged
    field: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def bound(self) -> float:
        return self.at_least if self.at_least is not None else self.at_most

    def met_by(self, value: float) -> bool:
        return value >= self.at_least if self.at_least is not None else value <= self.at_most


MIB = 1024 * 1024

TARGETS = [
    Target("one to one, of five bare rings", "one_to_one/ojs_shm", "one_to_one/five_rings", SPEED, at_least=0.45),
    Target("one to one, bounded, of five bare rings",
           "one_to_one_bounded/ojs_shm", "one_to_one/five_rings", SPEED, at_least=0.38),
    Target("one to one, over Boost message_queue",
           "one_to_one/ojs_shm", "one_to_one/boost_message_queue", SPEED, at_least=5),
    Target("one to one, over POSIX mq", "one_to_one/ojs_shm", "one_to_one/posix_mq", SPEED, at_least=8),
    Target("one to one, over Redis BZPOPMIN",
           "one_to_one/ojs_shm", "one_to_one/redis_zadd_bzpopmin", SPEED, at_least=400),
    Target("one to one, over Redis BLMOVE",
           "one_to_one/ojs_shm", "one_to_one/redis_lpush_blmove_lrem", SPEED, at_least=400),
    Target("one to one, over beanstalkd", "one_to_one/ojs_shm", "one_to_one/beanstalkd", SPEED, at_least=400),
    Target("one-way p50, spinning, of five bare rings",
           "latency_spinning/ojs_shm", "latency_spinning/five_rings", "p50_ns", at_most=1.5),
    Target("one-way p50, parked, of a bare futex wake",
           "latency_parked/ojs_shm", "latency_parked/bare_word", "p50_ns", at_most=1.25),
    Target("one thread, one in one out, of five bare rings",
           "one_thread/ojs_shm", "one_thread/five_rings", COST, at_most=5),
    Target("one thread, 4,000 waiting, of five bare rings",
           "one_thread_4000_waiting/ojs_shm", "one_thread_4000_waiting/five_rings", COST, at_most=4.5),
    Target("one thread, 4,000 in then out, of five bare rings",
           "one_thread_4000_in_then_out/ojs_shm", "one_thread_4000_in_then_out/five_rings", COST, at_most=4.5),
    Target("256 levels all filled, of 5", "levels_filled_256/ojs_shm", "levels_filled_5/ojs_shm", COST, at_most=1.4),
    Target("256 levels sparse, of 5, one thread",
           "levels_sparse_256/ojs_shm", "levels_sparse_5/ojs_shm", COST, at_most=2),
    Target("256 levels sparse, of 5, one to one",
           "one_to_one_256_levels/ojs_shm", "one_to_one/ojs_shm", COST, at_most=2),
    Target("a million waiting, of a thousand", "depth_million/ojs_shm", "depth_thousand/ojs_shm", COST, at_most=2),
    Target("two and two, of one and one", "two_and_two/ojs_shm", "one_to_one/ojs_shm", SPEED, at_least=1),
    Target("a fetch from an ageing queue, of one from a strict",
           "fetch_aged/ojs_shm", "fetch_strict/ojs_shm", COST, at_most=1.5),
    *(Target(f"a fetch over 64 loaded queues, of one over one, {strategy}",
             f"pools_fetch_{strategy}_64/ojs_shm", f"pools_fetch_{strategy}_1/ojs_shm", COST, at_most=2)
      for strategy in ("strict", "round-robin", "weighted", "least-loaded")),
    Target("a fetch among 100,000 tenants, of one among a hundred",
           "tenants_fair_100000/ojs_shm", "tenants_fair_100/ojs_shm", COST, at_most=2),
    Target("a fetch before a million held-back jobs, of one before none",
           "held_back_1000000/ojs_shm", "held_back_0/ojs_shm", COST, at_most=1.1),
    Target("counting how long a job waited and ran, ns", "observing_waits/ojs_shm", "", ADDED, at_most=5),
    Target("recording a job's three transitions, ns", "observing_recorder/ojs_shm", "", ADDED, at_most=6),
    Target("telling a job's three events, ns", "observing_events/ojs_shm", "", ADDED, at_most=5),
    Target("a sample of 100,000 jobs, 64 queues and 1,000 tenants, ms of a processor",
           "sampling_full/ojs_shm", "", "sample_ms", at_most=5),
    Target("a page of 100 of 100,000 jobs, ms of a processor", "sampling_page/ojs_shm", "", "page_ms", at_most=1),
    Target("speed of a saturated pair with a sample each second, of one without",
           "sampling_watched/ojs_shm", "", "watched_ratio", at_least=0.99),
    Target("a chain of 1,000 steps, of as many plain jobs", "workflow_chain/ojs_shm", "", "chain_ratio", at_most=3),
    Target("a unique enqueue, of a plain one", "unique_reject/ojs_shm", "", "enqueue_ratio", at_most=1.5),
    Target("an enqueue that replaces, of a plain one", "unique_replace/ojs_shm", "", "enqueue_ratio", at_most=3),
    Target("over HTTP, one connection, enqueue, over Redis ZADD",
           "http_enqueue/gateway", "http_enqueue/redis_zadd_bzpopmin_hdel", SPEED, at_least=1),
    Target("over HTTP, one connection, a job's life, over Redis ZADD, BZPOPMIN and an ack",
           "http_life/gateway", "http_life/redis_zadd_bzpopmin_hdel", SPEED, at_least=1),
    Target("over HTTP, 16 connections, a job's life, over beanstalkd",
           "http_life_16/gateway", "http_life_16/beanstalkd", SPEED, at_least=3),
    Target("over HTTP, 64 connections, enqueue, of a bare Beast server that echoes",
           "http_enqueue_64/gateway", "http_enqueue_64/beast_echo", SPEED, at_least=0.6),
    Target("native jobs beside a saturated gateway, of those alone",
           "http_native_beside/ojs_shm", "http_native_alone/ojs_shm", SPEED, at_least=0.5),
    Target("over HTTP, jobs a second in batches of 100", "http_batch_100/gateway", "", SPEED, at_least=300_000),
    Target("bytes of segment for a further job", "memory_job/ojs_shm", "", "bytes_per_further_job", at_most=384),
    Target("bytes of segment for an idle queue",
           "memory_idle_queue/ojs_shm", "", "bytes_per_idle_queue", at_most=16384),
    Target("bytes of the default segment", "memory_job/ojs_shm", "", "segment_bytes", at_most=64 * MIB),
    Target("jobs the default segment holds", "memory_job/ojs_shm", "", "jobs_held", at_least=100_000),
]

# What a table shows: its title, the benchmarks in it, the figure, its unit and what each line is compared with.
TABLES = [
    ("The physical limits: a cache line there and back", "limits", "line_rtt_ns", "ns", ""),
    ("One producer, one worker, saturated", "one_to_one", SPEED, "jobs/s", "five_rings"),
    ("The same, with a bounded queue", "one_to_one_bounded", SPEED, "jobs/s", ""),
    ("The same, over 256 priorities", "one_to_one_256_levels", SPEED, "jobs/s", ""),
    ("One-way latency, spinning worker, p50", "latency_spinning", "p50_ns", "ns", "five_rings"),
    ("One-way latency, spinning worker, p99", "latency_spinning", "p99_ns", "ns", "five_rings"),
    ("One-way latency, parked worker, p50 (bare_word: a futex wake)", "latency_parked", "p50_ns", "ns", "bare_word"),
    ("One-way latency, parked worker, p99", "latency_parked", "p99_ns", "ns", "bare_word"),
    ("One thread: one in, one out", "one_thread", COST, "ns/job", "five_rings"),
    ("One thread: one in, one out above 4,000 waiting", "one_thread_4000_waiting", COST, "ns/job", "five_rings"),
    ("One thread: 4,000 in, then out", "one_thread_4000_in_then_out", COST, "ns/job", "five_rings"),
    ("5 levels, all filled", "levels_filled_5", COST, "ns/job", "ojs_shm"),
    ("256 levels, all filled", "levels_filled_256", COST, "ns/job", "ojs_shm"),
    ("5 levels, sparse", "levels_sparse_5", COST, "ns/job", "ojs_shm"),
    ("256 levels, sparse", "levels_sparse_256", COST, "ns/job", "ojs_shm"),
    ("A thousand waiting", "depth_thousand", COST, "ns/job", "ojs_shm"),
    ("A million waiting", "depth_million", COST, "ns/job", "ojs_shm"),
    ("Two producers, two workers, two cores", "two_and_two", SPEED, "jobs/s", "five_rings"),
    ("The same, the queue in two shards", "two_and_two_shards_2", SPEED, "jobs/s", ""),
    ("The same, the queue in four shards", "two_and_two_shards_4", SPEED, "jobs/s", ""),
    ("A fetch from five filled levels, strict", "fetch_strict", COST, "ns/fetch", ""),
    ("A fetch from five filled levels, ageing", "fetch_aged", COST, "ns/fetch", ""),
    ("A fetch from five filled levels, weighted", "fetch_weighted", COST, "ns/fetch", ""),
    ("One in, one out, without a pool", "pools_none_1", COST, "ns/job", ""),
    ("A fetch and its ack, without a pool", "pools_fetch_none_1", COST, "ns/job", ""),
    *((f"A fetch and its ack for a pool: {strategy}, {queues} queues", f"pools_fetch_{strategy}_{queues}", COST,
       "ns/job", "") for strategy in ("strict", "round-robin", "weighted", "least-loaded") for queues in (1, 8, 64)),
    *((f"One in, one out for a pool: {strategy}, {queues} queues", f"pools_{strategy}_{queues}", COST, "ns/job", "")
      for strategy in ("strict", "round-robin", "weighted", "least-loaded") for queues in (1, 8, 64)),
    ("A fetch and its ack, of 100,000 tenants' jobs, plain FIFO", "tenants_fifo_100000", COST, "ns/job", ""),
    *((f"The same, tenants sharing by turns: {tenants:,}", f"tenants_fair_{tenants}", COST, "ns/job", "")
      for tenants in (1, 100, 100_000)),
    ("A fetch and its ack, plain FIFO, no limit set", "held_back_fifo", COST, "ns/job", ""),
    *((f"The same, held back by a limit: {jobs:,}", f"held_back_{jobs}", COST, "ns/job", "")
      for jobs in (0, 1000, 1_000_000)),
    ("Counting how long a job waited and ran", "observing_waits", ADDED, "ns/job", ""),
    ("Recording a job's three transitions", "observing_recorder", ADDED, "ns/job", ""),
    ("Telling a job's three events", "observing_events", ADDED, "ns/job", ""),
    ("A sample of 100,000 jobs, 64 queues and 1,000 tenants", "sampling_full", "sample_ms", "ms", ""),
    ("A page of 100 of 100,000 jobs", "sampling_page", "page_ms", "ms", ""),
    ("A saturated pair with a sample each second", "sampling_watched", "watched_ratio", "of its speed without", ""),
    ("A chain of 1,000 steps", "workflow_chain", "chain_ratio", "of as many plain jobs", ""),
    ("An enqueue of a unique job", "unique_reject", "enqueue_ratio", "of a plain one", ""),
    ("The same, of a key that ended jobs have had", "unique_again", "enqueue_ratio", "of a plain one", ""),
    ("The same, replacing another", "unique_replace", "enqueue_ratio", "of a plain one", ""),
    ("The key of a job", "unique_key", COST, "ns", ""),
    ("Over HTTP, one connection: enqueue", "http_enqueue", SPEED, "jobs/s", "gateway"),
    ("Over HTTP, one connection: a job's life", "http_life", SPEED, "jobs/s", "gateway"),
    ("Over HTTP, 16 connections: jobs' lives (beast_echo: three requests, answered as they came)", "http_life_16",
     SPEED, "jobs/s", "gateway"),
    ("Over HTTP, 64 connections: enqueue (beast_echo: the same bodies, answered as they came)", "http_enqueue_64",
     SPEED, "jobs/s", "beast_echo"),
    ("Over HTTP, batches of 100", "http_batch_100", SPEED, "jobs/s", ""),
    ("Over HTTP, 16 connections at half of the most: p50", "http_half_load", "p50_us", "us", ""),
    ("Over HTTP, 16 connections at half of the most: p99", "http_half_load", "p99_us", "us", ""),
    ("Native jobs in one thread, beside nobody", "http_native_alone", SPEED, "jobs/s", ""),
    ("The same, beside a saturated gateway on the other core", "http_native_beside", SPEED, "jobs/s", ""),
    ("Bytes of segment for a further job", "memory_job", "bytes_per_further_job", "bytes", ""),
    ("Bytes of segment for an idle queue", "memory_idle_queue", "bytes_per_idle_queue", "bytes", ""),
]
