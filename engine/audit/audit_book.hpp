// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/audit/audit.hpp"

namespace ojs_shm::engine {

/// What an audit has found so far.
class AuditBook {
 public:
  explicit AuditBook(const Store& store) : store_(store) {}
  const Store& store() const { return store_; }
  void say(std::uint32_t invariant, std::string text) {
    if (findings_.size() < kMostFindings) findings_.push_back({invariant, std::move(text)});
  }
  static std::string slot_name(std::uint32_t slot) { return "slot " + std::to_string(slot); }
  bool lane_taken(std::uint64_t owner) const {
    return owner >= 1 && owner <= store_.lanes() &&
           store_.segment().lane(static_cast<std::uint32_t>(owner - 1)).process.load() != 0;
  }
  std::vector<Finding> take() { return std::move(findings_); }

 protected:
  const Store& store_;

 private:
  std::vector<Finding> findings_;
};

/// Whose blocks are, and whether texts are whole.
void audit_blocks(AuditBook& book);
/// Whether queues follow it.
void audit_maintenance(AuditBook& book);
/// Permits and their holders; jobs in lots and the limits that hold them back.
void audit_limits(AuditBook& book);
/// Whom pools keep from jobs.
void audit_pools(AuditBook& book);
/// What tenants of bounded queues have waiting.
void audit_accounts(AuditBook& book);
/// Workflows and their jobs.
void audit_workflows(AuditBook& book);
/// Crons and their templates.
void audit_crons(AuditBook& book);
/// Registered workers.
void audit_workers(AuditBook& book);

}  // namespace ojs_shm::engine
