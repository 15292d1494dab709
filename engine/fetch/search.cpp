// SPDX-License-Identifier: Apache-2.0
#include "engine/fetch/search.hpp"

#include "engine/fetch/look.hpp"
#include "engine/tenants/tenant_turns.hpp"

// The promise of a fetch, for one queue. There is an instant inside the call at which the job it
// returns was available and no better one was: none at a smaller rank, none that stood before it at
// the same rank. And when it returns nothing, there was an instant at which nothing was available.
// It is kept by looking twice: 1. collect what proves that every better ring is empty (a clear
// index bit, or the empty cell at its head); 2. find the first live hint; 3. look at every proof
// again; 4. claim by one cas on the control word, which fails if the job changed meanwhile.

namespace ojs_shm::engine {

using shm::Point;

Search::Search(Store& store, std::uint32_t lane)
    : Flows(store, lane), look_(std::make_unique<Look>()) {}

Search::~Search() = default;

Search::Look& Search::begin_look() {
  look_->holds_turn = false;
  return *look_;
}

bool Search::unchanged(const QueueRecord& queue, const Look& look) const {
  if (queue.flags.load() != look.flags) return false;
  for (unsigned i = 0; i < look.words; ++i)
    if (queue.rings.index[i].load() != look.index[i]) return false;
  return look.witnesses_stand();
}

bool Search::look(QueueRecord& queue, Look& look) {
  look.queue = &queue;
  std::uint32_t left = rings_.longest_search();
  while (left > 0) {
    look.begin(queue.flags.load());
    if (((look.flags & kLimited) != 0 || worker_limit() != kNoIndex) && !past_gates_ &&
        !gate_open(queue)) [[unlikely]]
      return false;
    if (!is_plain(look.flags)) [[unlikely]]
      return survey(queue, look, left);
    bool restart = false;
    for (unsigned i = 0; i < (shut(queue, look.flags) ? 0 : shm::kIndexWords) && !restart; ++i) {
      look.index[i] = queue.rings.index[i].load();  // PAIR ring-index
      look.words = i + 1;
      for (std::uint64_t bits = look.index[i] & 0xFFFF'FFFF; bits != 0; bits &= bits - 1) {
        const unsigned number = i * 32 + static_cast<unsigned>(std::countr_zero(bits));
        Live live;
        if (!first_live<true>(queue.rings, number, look, left, live)) continue;
        if (!unchanged(queue, look)) {
          restart = true;
          break;
        }
        choose(look, live);
        return true;
      }
    }
    if (!restart && unchanged(queue, look)) return false;
  }
  return false;
}

bool Search::sees_work(std::uint32_t q) {
  QueueRecord& queue = store_.queue(q);
  Look& seen = begin_look();
  for (std::uint32_t left = rings_.longest_search(); left > 0 && look(queue, seen); --left) {
    if (seen.job->control.load_seq_cst() == seen.expected.word) return true;
    if (seen.leads) shm::Rings::retire(seen.found);
  }
  return false;
}

/// After a fetch found nothing: 1. announce it; 2. look, with all that a fetch does; 3. say that
/// the queue is quiet, unless anything in the word has moved. A lane that makes a job available
/// after our look finds the announcement, or what we say then, and takes it back; the look sees a
/// job that was made available before. A queue that is shut is left alone: others may see it.
/// Returns whether it may have a job.
[[gnu::noinline]] bool Search::settle_quiet(std::uint32_t q) {
  Word& word = store_.busy_word(q);
  std::uint64_t found = word.load_seq_cst();
  if (BusyWord::of(found, q) == BusyWord::kQuiet) return false;
  if (BusyWord::of(found, q) == BusyWord::kBusy) {  // 1
    const std::uint64_t quieting = BusyWord::with(found, q, BusyWord::kQuieting);
    if (!word.cas_once(found, quieting, Point::kBusyCleared)) return true;
    found = quieting;
  }
  past_gates_ = true;  // a limit that has no room hides no job for ever
  const bool has_job = shut(store_.queue(q), store_.queue(q).flags.load()) || sees_work(q);  // 2
  past_gates_ = false;
  if (has_job) {
    Bell::set_busy(word, q);
    return true;
  }
  word.cas_once(found, BusyWord::with(found, q, BusyWord::kQuiet),
                Point::kBusyCleared);  // 3. PAIR busy
  return false;
}

bool Search::has_waiting(std::uint32_t q) {
  sees_isolated_ = true;  // an isolated queue shows its jobs to its own workers
  const bool waits = settle_quiet(q);
  sees_isolated_ = false;
  return waits;
}

void Search::tidy_index(const Look& look) {
  for (unsigned i = 0; i < look.witnesses.size(); ++i) {
    const auto& witness = look.witnesses[i];
    tidy_ring(*witness.rings, witness.number, *witness.cell, witness.empty, look.witnesses.size());
  }
}

}  // namespace ojs_shm::engine
