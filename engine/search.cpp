// SPDX-License-Identifier: Apache-2.0
#include "engine/search.hpp"

#include "engine/look.hpp"
#include "engine/tenant_turns.hpp"

// The promise of a fetch, for one queue. There is an instant inside the call at which the job it
// returns was available and no better one was: none at a smaller rank, none that stood before it at
// the same rank. And when it returns nothing, there was an instant at which nothing was available.
// It is kept by looking twice: 1. collect what proves that every better ring is empty (a clear
// index bit, or the empty cell at its head); 2. find the first live hint; 3. look at every proof
// again; 4. claim by one cas on the control word, which fails if the job changed meanwhile.

namespace ojs_shm::engine {

Search::Search(Store& store, std::uint32_t lane)
    : Room(store, lane), look_(std::make_unique<Look>()) {}

Search::~Search() = default;

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
  Look& seen = *look_;
  seen.holds_turn = false;
  for (std::uint32_t left = rings_.longest_search(); left > 0 && look(queue, seen); --left) {
    if (seen.job->control.load_seq_cst() == seen.expected.word) return true;
    if (seen.leads) shm::Rings::retire(seen.found);
  }
  return false;
}

bool Search::sees_work_past_gates(std::uint32_t q) {
  past_gates_ = true;
  const bool seen = sees_work(q);
  past_gates_ = false;
  return seen;
}

void Search::tidy_index(const Look& look) {
  for (unsigned i = 0; i < look.witnesses.size(); ++i) {
    const auto& witness = look.witnesses[i];
    tidy_ring(*witness.rings, witness.number, *witness.cell, witness.empty, look.witnesses.size());
  }
}

}  // namespace ojs_shm::engine
