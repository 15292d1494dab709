// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/moves/mover.hpp"
#include "engine/moves/report.hpp"
#include "engine/tables/new_job.hpp"

namespace ojs_shm::engine {

/// What the holder of a running job does with it while it keeps it: it renews the lease, hands the
/// job over to that alone, and reports how far it is. The slot is taken by no lane for that.
class Holder : protected Mover {
 protected:
  using Mover::Mover;
  ~Holder() = default;

  // ---- leases (holder.cpp)
  Outcome heartbeat(std::uint32_t slot, std::uint64_t word, std::uint32_t lease_ms,
                    std::uint64_t& until);
  Outcome hand_over(std::uint32_t slot, std::uint64_t word);  ///< to its lease alone
  void note_lease(std::uint64_t lease_ms, std::uint64_t now);

  // ---- reports (report.cpp)
  /// How far it is, and texts; renews the lease, whose end it tells. kNoBlocks: the texts found no
  /// room, the rest is done.
  Outcome report(std::uint32_t slot, std::uint64_t word, const Report& report,
                 std::uint64_t& until);
  void withdraw_report(JobRecord& job);
  void end_report(std::uint32_t slot, bool late);

 private:
  enum class Lease : std::uint8_t { kAsAsked, kOnlyLonger };
  bool move_lease(JobRecord& job, std::uint64_t word, std::uint32_t lease_ms, Lease how,
                  std::uint64_t& until);
  std::optional<ReportTexts> texts_after(const Report& report, ReportWord before,
                                         std::uint32_t slot) const;
  bool is_over(std::uint32_t slot, std::uint32_t first, std::uint64_t word);
  Outcome report_texts(std::uint32_t slot, std::uint64_t word, const Report& report);
};

}  // namespace ojs_shm::engine
