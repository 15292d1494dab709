// SPDX-License-Identifier: Apache-2.0
#include "engine/tables/job_look.hpp"

#include <algorithm>
#include <bit>

#include "engine/unique/unique.hpp"
#include "shm/blocks.hpp"

namespace ojs_shm::engine {

shm::KeyIndex::Standing CarriesId::operator()(std::uint32_t slot) const {
  using Standing = shm::KeyIndex::Standing;
  if (slot >= store_.slots() || store_.job(slot).id() != id_) return Standing::kPasses;
  const unsigned state = Control(store_.job(slot).control.load()).state();
  if (state == kSlotFree) return Standing::kPasses;
  return state == kSlotFilling ? Standing::kComes : Standing::kKeepsOut;
}

bool CarriesId::plausible(std::uint32_t slot, std::uint64_t fingerprint) const {
  return carries_any(store_, slot, fingerprint);
}

bool carries_any(const Store& store, std::uint32_t slot, std::uint64_t fingerprint) {
  if (slot >= store.slots() || Control(store.job(slot).control.load()).state() == kSlotFree)
    return false;
  const JobRecord& carrier = store.job(slot);
  return shm::KeyIndex::fingerprint(hash_id(carrier.id())) == fingerprint ||
         ((carrier.signals.load() & kUnique) != 0 &&
          shm::KeyIndex::fingerprint(carrier.annex().key_lo.get()) == fingerprint);
}

std::uint32_t find_job(const Store& store, JobId id) {
  const auto stands_in = [&](std::uint32_t slot) {
    const unsigned state = Control(store.job(slot).control.load()).state();
    return state != kSlotFree && state != kSlotFilling && state < kSlotTemplate &&
           store.job(slot).id() == id;
  };
  if (const auto made_here = parts(id, store.segment().header().salt & ((1ULL << 56) - 1));
      made_here && made_here->slot < store.slots() && stands_in(made_here->slot))
    return made_here->slot;
  const std::uint32_t slot =
      shm::KeyIndex::find(store.segment(), hash_id(id), CarriesId(store, id));
  return slot != kNoIndex && stands_in(slot) ? slot : kNoIndex;
}

bool gave_away(const Store& store, JobId id) {
  const auto made = parts(id, store.segment().header().salt & ((1ULL << 56) - 1));
  if (!made || made->slot >= store.slots() || made->generation == 0) return false;
  const JobRecord& now = store.job(made->slot);
  const unsigned state = Control(now.control.load()).state();
  const std::uint32_t generation = now.generation.get();
  // A lane that takes the slot counts its lives up a moment later.
  const auto ahead = static_cast<std::int32_t>(generation - made->generation);  // lives wrap
  return ahead > 0 || (ahead == 0 && state == kSlotFilling);
}

std::optional<Snapshot> snapshot(const Store& store, std::uint32_t slot, bool texts, bool waiting) {
  if (slot >= store.slots()) return std::nullopt;
  const JobRecord& r = store.job(slot);
  for (int attempt = 0; attempt < 64; ++attempt) {
    Snapshot s;
    s.slot = slot;
    s.control = Control(r.control.load());  // PAIR slot-settle
    if (s.control.state() == kSlotFree || s.control.state() == kSlotFilling) return std::nullopt;
    const Control seen = s.control;
    if (is_exclusive(seen.state())) {
      if (attempt < 32) {  // a lane holds it for a moment
        shm::pause_cpu();
        continue;
      }
      // Its holder was stopped or killed right there: the job is what it was before.
      const unsigned before = seen.state() == kSlotSettling ? kSlotActive : kSlotAvailable;
      s.control = Control(before, seen.ring(), 0, seen.tag());
    } else if (waiting && seen.state() == kSlotWaiting) {
      s.control = Control(kSlotAvailable, seen.ring(), 0, seen.tag());
      s.waits = true;
    } else if (!holds_job(seen.state())) {
      return std::nullopt;  // a stranger's state
    }
    s.id = r.id();
    s.queue = r.queue.get();
    s.generation = r.generation.get();
    s.limits = r.limits.get();
    s.worker = WorkerKey(r.pool_word.get());
    s.attempt = r.attempt.get();
    s.policy = r.flags();
    s.available_at = r.available_at.get();
    s.deadline = Deadline(r.deadline.load()).ms();
    s.due_at = r.due_at.get();
    s.signals = r.signals.load();
    s.expires_at = r.expires_at.get();
    s.created_at = r.created_at.get();
    s.started_at = r.started_at.get();
    s.finished_at = r.finished_at.get();
    s.scheduled_at = r.scheduled_at.get();
    s.timeout_ms = r.timeout_ms.get();
    s.lease_ms = r.lease_ms.get();
    s.retry_delay_ms = r.retry_delay_ms.get();
    s.retry = retry_of(r);
    if ((s.signals & kAnnexed) != 0) [[unlikely]]
      s.annex = read_annex(r.annex(), s.signals & kAnnexed);
    if ((s.signals & kOwnTimes) != 0) [[unlikely]] {
      s.times = read_times(r.own_times());
      s.expires_at = r.own_times().expires_at.get();
    }
    s.type_length = r.type_length();
    s.args_length = r.args_length();
    const std::uint64_t body = r.body_length();
    if (texts && body <= std::uint64_t{store.max_body()} + kInlineBytes) {
      if (r.body_block.get() == kNoIndex && body <= kInlineBytes) {
        s.body.resize(body);
        shm::copy_out(s.body.data(), r.inline_bytes, body);
      } else {
        shm::Blocks::read(store.segment(), r.body_block.get(), slot, s.generation, body, s.body);
      }
      shm::Blocks::read(store.segment(), r.result_block.get(), slot, s.generation,
                        r.result_length.get(), s.result);
      shm::Blocks::read(store.segment(), r.errors_block.get(), slot, s.generation,
                        r.errors_length.get(), s.errors);
    }
    if ((s.signals & (kProgressMask | ReportWord::kTexts)) != 0) [[unlikely]]
      add_report(store, r, texts, s);
    // Type and args must lie within the body, whatever a stranger wrote.
    if (s.type_length + s.args_length > s.body.size()) {
      s.type_length =
          std::min<std::uint32_t>(s.type_length, static_cast<std::uint32_t>(s.body.size()));
      s.args_length = static_cast<std::uint32_t>(s.body.size()) - s.type_length;
    }
    if (Control(r.control.load()) == seen) return s;
  }
  return std::nullopt;
}

RetryPolicy retry_of(const JobRecord& job) {
  const Policy policy = job.flags();
  return {policy.max_attempts(),
          job.initial_ms.get(),
          job.max_ms.get(),
          std::bit_cast<float>(job.coefficient.get()),
          policy.backoff(),
          policy.has(Policy::kJitter),
          policy.has(Policy::kDeadLetter)};
}

}  // namespace ojs_shm::engine
