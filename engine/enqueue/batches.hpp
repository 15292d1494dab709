// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/actor.hpp"

namespace ojs_shm::engine {

/// The jobs of a batch that go to one queue: what they cost it, and how it makes room for them.
class Actor::Share {
 public:
  Share(Actor& actor, std::span<const NewJob> specs) : Share(actor, specs, 0, specs.size()) {}
  /// So many neighbours in a batch, the first at that place of it.
  Share(Actor& actor, std::span<const NewJob> batch, std::size_t at, std::size_t count);

  /// What they cost the queue and its tenants, and in which part of it each goes.
  Outcome measure();
  /// Charges queue and tenants. kOk: this lane's intent, Op::kBatch, says so.
  Outcome admit();
  /// Writes a job into a slot that this lane takes; a death frees it.
  Outcome fill(std::size_t i, JobId& id, std::uint32_t& slot);
  /// Whose account the job is charged to, once it is.
  void mark_account(std::size_t i, JobRecord& job) const;
  /// Whether those that make room by being replaced still wait, and are to be replaced.
  bool all_leave(const Rivals& rivals) const;
  void take_back_admission();
  /// Gives the victims of a batch that does not come back.
  void keep_victims();
  /// The jobs stand in the queue, and sums are read again where its settings changed meanwhile.
  /// True: its tenants are bounded now, and the jobs stand in no account.
  bool settings_moved();
  /// Wakes a sleeper for each job, as far as there are some.
  void wake();

  std::span<const NewJob> specs() const { return specs_; }
  std::uint32_t queue() const { return q_; }
  QueueRecord& record() { return queue_; }
  QueueTally& tally() { return mine_; }
  std::vector<Victim>& victims() { return victims_; }

 private:
  std::vector<TenantCharge>::iterator charge_of(std::uint64_t tenant) {
    return std::ranges::find(charges_, tenant, &TenantCharge::tenant);
  }

  Actor& actor_;
  std::span<const NewJob> batch_;
  std::span<const NewJob> specs_;
  std::size_t at_;
  std::uint32_t q_;
  QueueRecord& queue_;
  QueueTally& mine_;
  const std::uint64_t flags_;
  std::uint64_t cost_ = 0;
  Short<unsigned> parts_;  ///< of the queue, for each job
  std::vector<TenantCharge> charges_;
  std::vector<Leaver> leavers_;
  std::vector<Victim> victims_;
};

/// A batch on its way into one queue (batch.cpp).
class Actor::Batch {
 public:
  Batch(Actor& actor, std::span<const NewJob> specs) : actor_(actor), share_(actor, specs) {}
  /// All jobs, in order, or none.
  Outcome enter(std::vector<JobId>& ids);

 private:
  Outcome fill(std::vector<JobId>& ids);
  void take_back();
  void commit(JobId first);

  Actor& actor_;
  Share share_;
  Short<std::uint32_t> slots_;
  Rivals rivals_;
};

/// A batch on its way into several queues (spread.cpp).
class Actor::Spread {
 public:
  Spread(Actor& actor, std::span<const NewJob> specs);
  Spread(const Spread&) = delete;
  /// All jobs or none; those of one queue in order.
  Outcome enter(std::vector<JobId>& ids);

 private:
  Outcome fill(std::vector<JobId>& ids);
  Outcome admit();
  void hand_over(const Share& share, std::size_t first);
  bool all_leave() const;
  void take_back();
  void commit();

  Actor& actor_;
  std::vector<std::size_t> places_;  ///< in the batch, of each job
  std::vector<NewJob> specs_;        ///< by queues
  std::vector<Share> shares_;
  std::vector<std::uint32_t> slots_;
  Rivals rivals_;
};

/// A batch that has unique jobs. Those whose keys others have, and which are content with that, are
/// not enqueued; the rest is, all or none. Others are raised once it is, so a batch that is refused
/// changes nothing (unique_batch.cpp).
class Actor::UniqueBatch {
 public:
  UniqueBatch(Actor& actor, std::span<const NewJob> specs) : actor_(actor), specs_(specs) {}
  Outcome enter(std::vector<JobId>& ids);

 private:
  Conflicts& conflicts() { return actor_.conflicts_; }
  bool content(std::size_t i) const {
    return Uniqueness{specs_[i].annex->uniqueness}.on_conflict() == OnConflict::kIgnore;
  }
  Outcome choose();
  void tell(std::span<const JobId> made, std::vector<JobId>& ids);

  Actor& actor_;
  std::span<const NewJob> specs_;
  std::vector<JobId> others_;   ///< who has the key of each, where that is known
  Short<std::size_t> same_as_;  ///< the place of an earlier one of the same key
  Short<std::size_t> places_;   ///< of the chosen
  Short<NewJob> chosen_;
};

}  // namespace ojs_shm::engine
