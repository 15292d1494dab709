// SPDX-License-Identifier: Apache-2.0
// A long life under everything at once: each operation, kills and stops, an audit every second. In rounds: storm,
// drain, audit, and compare with the rounds before, for what must be flat is flat only between equal moments.
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/support/process.hpp"
#include "tests/support/storm/ojs_subject.hpp"
#include "tests/support/storm/report.hpp"
#include "tests/support/storm/storm.hpp"

namespace {

using namespace ojs_shm;
using namespace ojs_shm::test;

/// What must not grow from round to round.
struct Measures {
  std::uint64_t file_bytes = 0, chunks = 0, levels = 0, worker_kib = 0, broker_kib = 0;
  std::int64_t counter_drift = 0;  // enqueued less finished, when nothing is left
};

Measures measure(const OjsSubject& subject, const Ledger& ledger) {
  Measures now;
  struct stat file {};
  const SegmentInfo info = subject.observer().segment_info();
  if (::stat(info.path.c_str(), &file) == 0) now.file_bytes = static_cast<std::uint64_t>(file.st_blocks) * 512;
  for (const PoolInfo& pool : info.pools) {
    if (pool.name == "chunks") now.chunks = pool.used;
    if (pool.name == "levels") now.levels = pool.used;
  }
  for (const QueueInfo& queue : subject.observer().queues())
    now.counter_drift +=
        static_cast<std::int64_t>(queue.enqueued_total) -
        static_cast<std::int64_t>(queue.completed_total + queue.cancelled_total + queue.discarded_total);
  now.broker_kib = ledger.lane(0).private_kib.load();
  for (std::uint32_t lane = 1; lane < ledger.shape().lanes; ++lane)
    now.worker_kib = std::max(now.worker_kib, ledger.lane(lane).private_kib.load());
  return now;
}

bool grew(std::uint64_t before, std::uint64_t now, std::uint64_t slack) { return now > before + before / 4 + slack; }

void accuse_growth(Ledger& ledger, const Measures& first, const Measures& last, std::uint64_t kills) {
  const auto accuse = [&](std::string_view what, auto before, auto now) {
    ledger.accuse(Offence::kLeak, 0, {}, fmt::format("{} grew from {} to {}", what, before, now));
  };
  if (last.file_bytes != first.file_bytes) accuse("the segment's file", first.file_bytes, last.file_bytes);
  if (grew(first.chunks, last.chunks, 256)) accuse("chunks in use", first.chunks, last.chunks);
  if (grew(first.worker_kib, last.worker_kib, 8192))
    accuse("memory of a process (KiB)", first.worker_kib, last.worker_kib);
  // A process killed between a job's last step and its counter loses that count, and no other.
  if (static_cast<std::uint64_t>(std::llabs(last.counter_drift)) > kills)
    accuse("counter drift", 0, last.counter_drift);
}

int soak(std::uint64_t seconds, std::uint64_t seed) {
  const ScratchDirectory scratch;
  OjsPlan plan;
  plan.name = {"soak", scratch.path()};
  plan.everything = true;
  plan.options.size_bytes = 192U << 20;
  plan.options.max_queues = 8;
  plan.options.retention_ms = 2000;
  OjsSubject subject(plan);
  StormPlan storm_plan;
  storm_plan.seed = seed;
  storm_plan.look_every_ms = 1000;
  storm_plan.pause_us_high = 200'000;
  storm_plan.seconds = std::clamp<std::uint64_t>(seconds / 6, 5, 60);
  Ledger ledger({storm_plan.producers, 1 + storm_plan.producers + storm_plan.workers, 16U << 20});
  fmt::print("soak: seed {}, {} s in rounds of {} s\n", seed, seconds, storm_plan.seconds);
  fmt::print("round     jobs   kills  stops  acks/s  audits  chunks  file MiB  worker MiB  drift  offences\n");

  std::optional<Measures> first;
  Measures last;
  StormOutcome outcome;
  LedgerVerdict all;
  {
    Storm storm(subject, ledger, storm_plan);
    storm.start();
    const std::uint64_t until = monotonic_ns() + seconds * 1'000'000'000U;
    for (int round = 1; ledger.offences() == 0 && !Storm::interrupted(); ++round) {
      const std::uint64_t acked = ledger.sum(&LaneBook::completed);
      const double raged = storm.outcome().raged_s;
      storm.rage();
      if (storm.outcome().wedged || !storm.drain()) break;
      storm.dismiss_workers();
      const LedgerVerdict verdict = ledger.judge(subject.unfinished(ledger));
      subject.inspect(ledger);
      all.returned += verdict.returned, all.attempted_only += verdict.attempted_only, all.refused += verdict.refused;
      all.completed += verdict.completed, all.killed_in_ack += verdict.killed_in_ack;
      all.cancelled += verdict.cancelled, all.discarded += verdict.discarded, all.lost += verdict.lost;
      last = measure(subject, ledger);
      // The first round warms up: levels, chunks and heaps take their size.
      if (round == 2) first = last;
      if (first) accuse_growth(ledger, *first, last, storm.outcome().kills);
      fmt::print("{:>5} {:>8} {:>7} {:>6} {:>7.0f} {:>7} {:>7} {:>9} {:>11.1f} {:>6} {:>9}\n", round, verdict.returned,
                 storm.outcome().kills, storm.outcome().stops,
                 static_cast<double>(ledger.sum(&LaneBook::completed) - acked) / (storm.outcome().raged_s - raged),
                 subject.looks(), last.chunks, last.file_bytes >> 20, static_cast<double>(last.worker_kib) / 1024.0,
                 last.counter_drift, ledger.offences());
      if (monotonic_ns() >= until) break;
      storm.resume();
    }
    if (!storm.outcome().wedged && storm.outcome().drained) {
      storm.dismiss_broker();
      subject.inspect_abandoned(ledger);
    }
    outcome = storm.outcome();
  }
  subject.remove();
  fmt::print("\n{}", storm_report(subject, storm_plan, outcome, all, ledger));
  fmt::print("{}\n", ledger.offences() == 0 ? "  flat, and nothing lost, doubled or leaked"
                                            : fmt::format("  FAILED; again with --seed {}", seed));
  return ledger.offences() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seconds = 60, seed = std::random_device{}();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--minutes") == 0)
      seconds = value * 60;
    else if (std::strcmp(argv[i], "--seconds") == 0)
      seconds = value;
    else if (std::strcmp(argv[i], "--seed") == 0)
      seed = value;
    else
      argc = 0;
  }
  if (argc % 2 == 0) {
    fmt::print(stderr, "usage: soak [--minutes N | --seconds N] [--seed N]\n");
    return 2;
  }
  try {
    return soak(seconds, seed);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "soak: {}\n", failure.what());
    return 1;
  }
}
