// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ojs_shm/observer.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/storm/ojs_lanes.hpp"
#include "tests/support/storm/subject.hpp"

namespace ojs_shm::test {

/// ojs-shm in the storm.
class OjsSubject : public Subject {
 public:
  explicit OjsSubject(const OjsPlan& plan);
  ~OjsSubject() override;

  std::string name() const override { return plan_.tight ? "ojs-shm, tight" : "ojs-shm"; }
  bool has_broker() const override { return true; }
  void create() override;
  void remove() noexcept override;
  void produce(Lane& lane) override;
  void work(Lane& lane) override;
  void broke(Lane& lane) override;
  void observe(Lane& lane) override;
  std::optional<pid_t> supervisor() override;
  bool knows(std::string_view id, std::uint64_t since_ns) override;
  bool drained(const Ledger& ledger) override;
  void look(Ledger& ledger) override;
  std::vector<PayloadKey> unfinished(Ledger& ledger) override;
  void compare(Ledger& ledger, const LedgerVerdict& verdict) override;
  void inspect(Ledger& ledger) override;
  std::vector<std::string> remarks() override;
  void inspect_abandoned(Ledger& ledger) override;

  /// For reports of a longer life.
  const Observer& observer() const { return *observer_; }
  std::uint64_t looks() const { return looks_; }

 private:
  /// No unfinished job and no dead letter, each looked for at its own moment.
  bool is_empty() const;
  void accuse_violations(Ledger& ledger, std::string_view when);
  void check_ends(Ledger& ledger, const std::vector<JobInfo>& jobs);
  void check_policies(Ledger& ledger);
  void check_pools(Ledger& ledger);

  OjsPlan plan_;
  std::optional<Observer> observer_;
  std::vector<PoolInfo> first_pools_;
  std::set<std::string> last_look_;
  std::uint64_t looks_ = 0, dropped_before_ = 0;
};

}  // namespace ojs_shm::test
