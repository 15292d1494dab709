// SPDX-License-Identifier: Apache-2.0
#include "tests/support/storm/report.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

namespace ojs_shm::test {
namespace {

std::string percentile_ms(const std::vector<std::uint32_t>& sorted, double share) {
  const auto place = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1));
  return fmt::format("{:.1f} ms", sorted[place] / 1000.0);
}

}  // namespace

std::string offences_report(const Ledger& ledger) {
  constexpr int kNotesEach = 5;
  std::string text;
  const auto notes = ledger.notes();
  for (std::uint32_t kind = 0; kind < static_cast<std::uint32_t>(Offence::kCount); ++kind) {
    const auto offence = static_cast<Offence>(kind);
    if (ledger.offences(offence) == 0) continue;
    text += fmt::format("  {}: {}\n", offence_name(offence), ledger.offences(offence));
    int shown = 0;
    for (const OffenceNote* note : notes) {
      if (note->offence.load() != kind + 1 || shown++ >= kNotesEach) continue;
      text += fmt::format("    life {:>6}  job {}/{}  {}\n", note->life.load(), note->key.producer,
                          note->key.sequence, note->text);
    }
  }
  return text;
}

std::string storm_report(const Subject& subject, const StormPlan& plan, const StormOutcome& outcome,
                         const LedgerVerdict& verdict, const Ledger& ledger) {
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(
      out, "{}: seed {}, {} producers, {} workers, {:.1f} s of storm, {:.1f} s to drain\n",
      subject.name(), plan.seed, plan.producers, plan.workers, outcome.raged_s, outcome.drain_s);
  fmt::format_to(out,
                 "  kills {} (producers {}, workers {}, broker {}, observers {}; {} as "
                 "supervisor), stops {}, farewells {}\n",
                 outcome.kills, outcome.kills_of[0], outcome.kills_of[1], outcome.kills_of[2],
                 outcome.kills_of[3], outcome.supervisor_kills, outcome.stops, outcome.farewells);
  fmt::format_to(
      out,
      "  jobs: enqueue returned {}, killed in enqueue {}, refused {}; dispatches {}, acks/s "
      "{:.0f}\n",
      verdict.returned, verdict.attempted_only, verdict.refused, ledger.sum(&LaneBook::dispatched),
      static_cast<double>(ledger.sum(&LaneBook::completed)) / std::max(0.001, outcome.raged_s));
  fmt::format_to(
      out, "  ends: acked {}, killed in ack {}, cancelled {}, discarded {}, dropped {}, lost {}\n",
      verdict.completed, verdict.killed_in_ack, verdict.cancelled, verdict.discarded,
      verdict.dropped, verdict.lost);
  fmt::format_to(out, "  again: nacked {}, requeued {}, lease ended {}, told lost {}\n",
                 ledger.sum(&LaneBook::retried), ledger.sum(&LaneBook::requeued),
                 ledger.sum(&LaneBook::takeovers), ledger.sum(&LaneBook::lost));
  if (ledger.sum(&LaneBook::dead) != 0)
    fmt::format_to(out, "  dead letters {}: retried {}, dropped {}\n", ledger.sum(&LaneBook::dead),
                   ledger.sum(&LaneBook::revived), ledger.sum(&LaneBook::buried));
  if (const auto recoveries = ledger.recoveries(); !recoveries.empty()) {
    fmt::format_to(
        out, "  from a kill to the next dispatch of its jobs: p50 {}, p99 {}, max {} ({} jobs)\n",
        percentile_ms(recoveries, 0.5), percentile_ms(recoveries, 0.99),
        percentile_ms(recoveries, 1.0), recoveries.size());
  }
  if (plan.observers != 0)
    fmt::format_to(
        out,
        "  seen: {} events, {} more overwritten before; {} copies, {} of their jobs compared\n",
        ledger.sum(&LaneBook::events), ledger.sum(&LaneBook::events_lost),
        ledger.sum(&LaneBook::copies), ledger.sum(&LaneBook::copied_jobs));
  fmt::format_to(out, "  longest time in which nothing at all moved: {} ms{}\n",
                 outcome.longest_silence_ms, outcome.wedged ? " (wedged)" : "");
  return text + offences_report(ledger);
}

}  // namespace ojs_shm::test
