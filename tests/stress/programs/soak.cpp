// SPDX-License-Identifier: Apache-2.0
// A long life under everything at once: each operation, kills and stops, an audit every second. In
// rounds: storm, drain, audit, and compare with the rounds before, for what must be flat is flat
// only between equal moments.
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <utility>

#include "tests/support/process.hpp"
#include "tests/support/storm/ojs_subject.hpp"
#include "tests/support/storm/report.hpp"
#include "tests/support/storm/storm.hpp"

namespace {

using namespace ojs_shm;
using namespace ojs_shm::test;

/// What must not grow from round to round.
struct Measures {
  std::uint64_t file_bytes = 0, levels = 0, chunks = 0, keys = 0, worker_kib = 0;
  std::int64_t counter_drift = 0;  // enqueued less finished, when nothing is left
};

Measures measure(const OjsSubject& subject, const Ledger& ledger,
                 std::uint32_t workers_and_producers) {
  Measures now;
  struct stat file {};
  const SegmentInfo info = subject.observer().segment_info();
  if (::stat(info.path.c_str(), &file) == 0)
    now.file_bytes = static_cast<std::uint64_t>(file.st_blocks) * 512;
  for (const PoolInfo& pool : info.pools) {
    if (pool.name == "levels") now.levels = pool.used;
    if (pool.name == "chunks") now.chunks = pool.used;
  }
  now.keys = subject.observer().limits().size();
  for (const QueueInfo& queue : subject.observer().queues())
    now.counter_drift += static_cast<std::int64_t>(queue.enqueued_total) -
                         static_cast<std::int64_t>(queue.completed_total + queue.cancelled_total +
                                                   queue.discarded_total);
  // A dead letter that was sent out again ends twice.
  now.counter_drift += static_cast<std::int64_t>(ledger.sum(&LaneBook::revived));
  // Neither the broker, nor who copies the whole segment.
  for (std::uint32_t lane = 1; lane <= workers_and_producers; ++lane)
    now.worker_kib = std::max(now.worker_kib, ledger.lane(lane).private_kib.load());
  return now;
}

bool grew(std::uint64_t before, std::uint64_t now, std::uint64_t slack) {
  return now > before + before / 4 + slack;
}

void accuse_growth(Ledger& ledger, const Measures& first, const Measures& last,
                   std::uint64_t kills) {
  const auto accuse = [&](std::string_view what, auto before, auto now) {
    ledger.accuse(Offence::kLeak, 0, {}, fmt::format("{} grew from {} to {}", what, before, now));
  };
  if (last.file_bytes != first.file_bytes)
    accuse("the segment's file", first.file_bytes, last.file_bytes);
  // A level keeps a chunk, and a level once used stays.
  if (grew(first.chunks, last.chunks - (last.levels - first.levels), 256))
    accuse("chunks in use", first.chunks, last.chunks);
  if (grew(first.worker_kib, last.worker_kib, 8192))
    accuse("memory of a process (KiB)", first.worker_kib, last.worker_kib);
  // A process killed between a job's last step and its counter loses that count, and no other.
  if (static_cast<std::uint64_t>(std::llabs(last.counter_drift)) > kills)
    accuse("counter drift", 0, last.counter_drift);
}

/// A pool that leaks comes to its end, and from then on its queue stands still: keys of limits,
/// accounts of tenants, places in line. So in each round each queue takes jobs in and gives some
/// out, but for the one that comes and goes, which never has any.
class Flow {
 public:
  void judge(const Observer& observer, Ledger& ledger) {
    for (const QueueInfo& queue : observer.queues()) {
      std::pair now{queue.enqueued_total, queue.completed_total};
      std::swap(now, before_[queue.name]);
      if (queue.name == kPassingQueue) continue;
      if (now.first != queue.enqueued_total && now.second != queue.completed_total) continue;
      ledger.accuse(Offence::kWedged, 0, {}, queue.name + " stood still for a whole round");
    }
  }

 private:
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> before_;
};

int soak(std::uint64_t seconds, std::uint64_t seed) {
  const ScratchDirectory scratch;
  OjsPlan plan;
  plan.name = {"soak", scratch.path()};
  plan.everything = plan.policies = true;
  plan.options.size_bytes = 192U << 20;
  plan.options.slots = 102'400;
  plan.options.max_queues = 64;  // for their levels, which are never given back
  plan.options.retention_ms = 2000;
  OjsSubject subject(plan);
  StormPlan storm_plan;
  storm_plan.seed = seed;
  storm_plan.observers = 1;
  storm_plan.look_every_ms = 1000;
  storm_plan.pause_us_high = 200'000;
  storm_plan.seconds = std::clamp<std::uint64_t>(seconds / 6, 5, 60);
  Ledger ledger({storm_plan.producers,
                 1 + storm_plan.producers + storm_plan.workers + storm_plan.observers, 16U << 20});
  fmt::print("soak: seed {}, {} s in rounds of {} s\n", seed, seconds, storm_plan.seconds);
  fmt::print(
      "round     jobs dropped   kills  stops  acks/s  audits  copies  chunks  keys  file MiB  "
      "worker MiB  drift  "
      "offences\n");

  Flow flow;
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
      subject.compare(ledger, verdict);
      subject.inspect(ledger);
      all.returned += verdict.returned, all.attempted_only += verdict.attempted_only,
          all.refused += verdict.refused;
      all.completed += verdict.completed, all.killed_in_ack += verdict.killed_in_ack;
      all.cancelled += verdict.cancelled, all.discarded += verdict.discarded,
          all.buried += verdict.buried, all.lost += verdict.lost;
      all.dropped += verdict.dropped;
      last = measure(subject, ledger, storm_plan.producers + storm_plan.workers);
      if (!Storm::interrupted()) flow.judge(subject.observer(), ledger);
      // The first round warms up: levels, chunks and heaps take their size.
      if (round == 2) first = last;
      if (first) accuse_growth(ledger, *first, last, storm.outcome().kills);
      fmt::print(
          "{:>5} {:>8} {:>7} {:>7} {:>6} {:>7.0f} {:>7} {:>7} {:>7} {:>5} {:>9} {:>11.1f} {:>6} "
          "{:>9}\n",
          round, verdict.returned, verdict.dropped, storm.outcome().kills, storm.outcome().stops,
          static_cast<double>(ledger.sum(&LaneBook::completed) - acked) /
              (storm.outcome().raged_s - raged),
          subject.looks(), ledger.sum(&LaneBook::copies), last.chunks, last.keys,
          last.file_bytes >> 20, static_cast<double>(last.worker_kib) / 1024.0, last.counter_drift,
          ledger.offences());
      if (monotonic_ns() >= until) break;
      storm.resume();
    }
    if (!storm.outcome().wedged && storm.outcome().drained) {
      storm.dismiss_all();
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
