// SPDX-License-Identifier: Apache-2.0
#include "engine/audit/audit.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "engine/audit/audit_book.hpp"
#include "engine/bounds/refill.hpp"
#include "engine/tables/hint_lives.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/tables/ring_look.hpp"
#include "engine/unique/unique.hpp"
#include "shm/key_index.hpp"

namespace ojs_shm::engine {
namespace {

using shm::ChunkControl;
using shm::ChunkState;
using shm::Hint;
using shm::Place;

/// One walk. Each member checks the invariants whose numbers stand beside it.
class Audit : AuditBook {
 public:
  explicit Audit(const Store& store) : AuditBook(store), segment_(store.segment()) {}

  std::vector<Finding> run() {
    slots();                   // 1, 2, 9, 12, 13, 16
    rings();                   // 3, 4, 5, 7
    chunks();                  // 6
    audit_blocks(*this);       // 8, 9
    tallies();                 // 10, 11
    sleepers();                // 14
    tickets();                 // 14
    processes();               // 15
    pages();                   // 17
    ids();                     // 24
    keys();                    // 25
    audit_limits(*this);       // 14, 18, 19
    audit_pools(*this);        // 21, 22
    audit_accounts(*this);     // 14, 23
    audit_workflows(*this);    // 27
    audit_crons(*this);        // 28
    audit_workers(*this);      // 29
    audit_maintenance(*this);  // 30
    return take();
  }

 private:
  void slots() {
    depth_.assign(store_.max_queues(), 0);
    for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
      const JobRecord& job = store_.job(slot);
      const Control control(job.control.load());
      const unsigned state = control.state();
      const bool held = is_exclusive(state) || state == kSlotActive;
      if (held == (control.owner() == 0))
        say(1, slot_name(slot) + (held ? " is held by no lane" : " waits and has an owner"));
      if (held && control.owner() != 0 && control.owner() != shm::kLeaseOwner &&
          !lane_taken(control.owner()))
        say(2, slot_name(slot) + " belongs to lane " + std::to_string(control.owner() - 1) +
                   ", which is free");
      if (state == kSlotFree || state == kSlotFilling) continue;
      const std::uint64_t body = job.body_length();
      if (job.type_length() == 0 || body > store_.max_body() ||
          (job.body_block.get() == kNoIndex && body > job.inline_room()))
        say(9, slot_name(slot) + " has a body of impossible lengths");
      const std::uint32_t q = job.queue.get();
      if (q >= store_.max_queues() || store_.queue(q).name_hash.load() == 0) {
        say(12, slot_name(slot) + " names queue " + std::to_string(q) + ", which does not exist");
        continue;
      }
      identity(slot, job);
      times(slot, job, control);
      const bool counted =
          state == kSlotMoving || (holds_job(state) && counts_as_depth(job_state(state)));
      if (counted) depth_[q] += charge(1, body);
    }
  }

  void identity(std::uint32_t slot, const JobRecord& job) {
    const JobId id = job.id();
    if (!job.flags().has(Policy::kForeignId)) {
      const auto made = parts(id, segment_.header().salt & ((1ULL << 56) - 1));
      if (!made || made->slot != slot || made->generation != job.generation.get())
        say(13, slot_name(slot) + " carries the id " + to_string(id) + ", which leads elsewhere");
    } else if (shm::KeyIndex::find(segment_, hash_id(id), CarriesId(store_, id)) != slot) {
      say(13, slot_name(slot) + " carries the brought id " + to_string(id) +
                  ", which the index does not know");
    }
  }

  void times(std::uint32_t slot, const JobRecord& job, Control control) {
    const unsigned state = control.state();
    if ((state == kSlotScheduled || state == kSlotRetryable) && job.due_at.get() == 0)
      say(16, slot_name(slot) + " waits for a time and has none");
    if (state == kSlotActive && !Deadline(job.deadline.load()).belongs_to(control.tag()))
      say(16, slot_name(slot) + " is active with the lease of another attempt");
    if (is_finished(state) && job.finished_at.get() == 0)
      say(16, slot_name(slot) + " is finished and has no time of it");
  }

  /// Walks one ring; marks its chunks and what its hints lead to.
  void walk_ring(std::uint32_t ring, const std::string& name, std::vector<Hint>& hints) {
    Place at(segment_.ring(ring).head.load());
    const Place tail(segment_.ring(ring).tail.load());
    bool met_tail = false;
    for (std::uint32_t steps = 0;; ++steps) {
      if (at.chunk() >= segment_.geometry().chunks || steps > segment_.geometry().chunks) {
        say(5, name + " leads out of the chunk table or in a circle");
        return;
      }
      const shm::Chunk& chunk = segment_.chunk(at.chunk());
      const ChunkControl control(chunk.control.load());
      if (control.incarnation() != at.incarnation()) {
        say(5, name + " leads to chunk " + std::to_string(at.chunk()) + " of another incarnation");
        return;
      }
      if (control.state() != ChunkState::kLinked && control.state() != ChunkState::kLinking &&
          control.state() != ChunkState::kDropping)
        say(5, name + " leads to chunk " + std::to_string(at.chunk()) +
                   ", which does not say that it is linked");
      if (++chunk_seen_[at.chunk()] > 1)
        say(6, "chunk " + std::to_string(at.chunk()) + " stands in two rings");
      met_tail = met_tail || (tail.chunk() == at.chunk() && tail.incarnation() == at.incarnation());
      for (unsigned i = at.cell(); i < shm::kCellsPerChunk; ++i) {
        const std::uint64_t value = chunk.cell[i].load();
        if (shm::is_empty(value)) {
          if (shm::incarnation_of(value) != at.incarnation())
            say(5,
                name + " has a cell of another incarnation in chunk " + std::to_string(at.chunk()));
          if (!met_tail) say(5, name + " has its tail outside");
          return;
        }
        hints.emplace_back(value);
      }
      const std::uint64_t next = chunk.next.load();
      if (shm::is_empty(next)) {
        if (!met_tail) say(5, name + " has its tail outside");
        return;
      }
      at = Place(Hint(next).index(), 0, Hint(next).tag());
    }
  }

  /// The rings of flows, whose jobs can be reached where the flow can.
  template <class Own>
  void flows(const Own& own) {
    for (std::uint32_t flow = 0; flow < store_.flows.size(); ++flow)
      if (FlowControl(store_.flows[flow].control.load()).in_line() && !lined_[flow])
        say(20, "flow " + std::to_string(flow) + " is in line, but nothing in a line leads to it");
    each_flow(store_, [&](std::uint32_t flow, std::uint32_t ring) {
      const std::string name = "the ring of flow " + std::to_string(flow);
      if (!own(ring, name)) return;
      std::vector<Hint> hints;
      walk_ring(ring, name, hints);
      if (lined_[flow])
        for (const Hint& hint : hints)
          if (hint_lives(segment_, hint)) hinted_[hint.index()] = true;
    });
  }

  void rings() {
    chunk_seen_.assign(segment_.geometry().chunks, 0);
    hinted_.assign(store_.slots(), false);
    lined_.assign(store_.flows.size(), false);
    std::vector<std::uint32_t> owners(segment_.geometry().rings, 0);
    auto own = [&](std::uint32_t ring, const std::string& name) {
      if (ring >= owners.size()) {
        say(7, name + " does not exist");
        return false;
      }
      if (++owners[ring] > 1) say(7, name + " is also another ring");
      if (segment_.ring(ring).claimed.load() == 0) say(7, name + " is not marked as used");
      return true;
    };
    for (const std::uint32_t ring : own_rings(store_)) {
      const bool finished = ring == store_.header().finished_ring;
      const std::string name = finished ? "the ring of finished batches"
                               : ring == store_.header().timers_ring
                                   ? "the ring of timers"
                                   : "the ring of those who wait for room, or of tenants";
      std::vector<Hint> hints;
      if (own(ring, name)) walk_ring(ring, name, hints);
      for (const Hint& hint : hints)
        if (hint.leads_to_line() && hint.index() < lined_.size() && any_lives(segment_, hint))
          lined_[hint.index()] = true;
      if (finished)
        for (const Hint& hint : hints)
          if (hint.index() < chunk_seen_.size() && batch_lives(segment_, hint))
            chunk_seen_[hint.index()] = 1;
    }
    for (const QueuePart& part : all_parts(store_)) {
      const shm::RingSet& set = *part.rings;
      const std::string place =
          (part.number == 0 ? "" : " of part " + std::to_string(part.number)) + " of queue '" +
          store_.queue_name(part.queue) + "'";
      for (unsigned n = 0; n < shm::kRingsPerSet; ++n) {
        const std::uint32_t ring = shm::Rings::find(set, n);
        if (ring == kNoIndex) continue;
        const std::string name = "ring " + std::to_string(n) + place;
        if (!own(ring, name)) continue;
        std::vector<Hint> hints;
        walk_ring(ring, name, hints);
        bool live = false;
        for (const Hint& hint : hints) {
          if (hint.leads_to_line() && hint.index() < lined_.size() && any_lives(segment_, hint))
            lined_[hint.index()] = live = true;
          if (!hint_lives(segment_, hint)) continue;
          const JobRecord& job = store_.job(hint.index());
          const Control control(job.control.load());
          if (control.tag() == hint.tag() &&
              (control.ring() != n || &store_.rings_of(job) != part.rings))
            continue;
          hinted_[hint.index()] = true;
          live = true;
        }
        if (live && (set.index[n / 32].load() >> (n % 32) & 1) == 0)
          say(4, name + " holds jobs, but the index says that it is empty");
      }
    }
    flows(own);
    for (std::uint32_t slot = 0; slot < store_.slots(); ++slot)
      if (Control(store_.job(slot).control.load()).state() == kSlotAvailable && !hinted_[slot])
        say(3, slot_name(slot) + " is available, but nothing in its ring leads to it");
    for (std::uint32_t i = 0; i < segment_.geometry().rings; ++i) {
      const std::uint32_t claimed = segment_.ring(i).claimed.load();
      if (claimed != 0 && claimed != shm::kNoIndex && !lane_taken(claimed))
        say(7, "ring table entry " + std::to_string(i) + " is being made by no lane");
      if (claimed == shm::kNoIndex && owners[i] == 0)
        say(7, "ring table entry " + std::to_string(i) + " is used by no queue");
    }
  }

  void chunks() {
    for (std::uint32_t i = 0; i < segment_.geometry().chunks; ++i) {
      const ChunkControl control(segment_.chunk(i).control.load());
      const std::string name = "chunk " + std::to_string(i);
      switch (control.state()) {
        case ChunkState::kFree:
          if (chunk_seen_[i] != 0) say(6, name + " is free and in use");
          break;
        case ChunkState::kLinked:
          if (chunk_seen_[i] == 0)
            say(6, name + " says that it is linked, but no ring leads to it");
          break;
        case ChunkState::kBatched:
          if (chunk_seen_[i] == 0) say(6, name + " is a batch that no ring leads to");
          break;
        case ChunkState::kSpare:
        case ChunkState::kLinking:
        case ChunkState::kBatch:
        case ChunkState::kDropping:
          if (!lane_taken(control.owner())) say(6, name + " is held by no lane");
          break;
        default:
          say(6, name + " has the impossible state " +
                     std::to_string(static_cast<unsigned>(control.state())));
      }
    }
  }

  void tallies() {
    const std::uint32_t lanes = store_.lanes();
    for (std::uint32_t q = 0; q < store_.queue_count(); ++q) {
      const std::string name = "queue '" + store_.queue_name(q) + "'";
      const std::uint64_t depth = store_.depth_charge(q);
      if (depth != depth_[q])
        say(10, name + " is said to hold " + std::to_string(charged_jobs(depth)) + " jobs and " +
                    std::to_string(charged_bytes(depth)) + " bytes, and holds " +
                    std::to_string(charged_jobs(depth_[q])) + " and " +
                    std::to_string(charged_bytes(depth_[q])));
      std::uint64_t reserved = 0;
      for (std::uint32_t l = 0; l < lanes; ++l)
        reserved += store_.tally(q, l).in_reserved.get_ordered();
      if (reserved != store_.queue(q).reserved.load() - store_.queue(q).written_off.load() &&
          !Refill(store_.queue(q).refill.load()).pending())
        say(11, name + " reserves what no lane reserved");
      if (Store::hash_name(store_.queue_name(q)) != store_.queue(q).name_hash.load() &&
          store_.queue(q).name_length.load() != 0)
        say(12, name + " has a name that is not its own");
    }
  }

  void sleepers() {
    for (std::uint32_t q = 0; q < store_.queue_count(); ++q) {
      const std::uint64_t settler = store_.queue(q).settler.load();
      if (settler != 0 &&
          (settler > store_.lanes() || !lane_taken(static_cast<std::uint32_t>(settler))))
        say(14, "the settings of queue '" + store_.queue_name(q) + "' are being written by lane " +
                    std::to_string(settler - 1) + ", and is free");
      const std::uint32_t dropper = store_.queue(q).dropper.load();
      if (dropper != 0 && (dropper > store_.lanes() || !lane_taken(dropper)))
        say(14, "lane " + std::to_string(dropper - 1) + " drops jobs of queue '" +
                    store_.queue_name(q) + "', and is free");
      for (std::uint32_t l = 0; l < shm::kMaxLanes; ++l)
        if ((store_.queue(q).waiters[l / 64].load() >> (l % 64) & 1) != 0 && !lane_taken(l + 1))
          say(14, "lane " + std::to_string(l) + " sleeps for queue '" + store_.queue_name(q) +
                      "', and is free");
    }
  }

  void tickets() {
    for (std::uint32_t i = 0; i < store_.tickets.size(); ++i) {
      const TicketControl control(store_.tickets[i].control.load());
      if (control.taken() &&
          (control.queue() >= store_.queue_count() || !lane_taken(control.owner())))
        say(14, "ticket " + std::to_string(i) +
                    " waits for a queue that does not exist, or for no lane");
    }
  }

  void processes() {
    for (std::uint32_t l = 0; l < store_.lanes(); ++l) {
      const std::uint32_t process = segment_.lane(l).process.load();
      if (process == 0 && segment_.lane(l).intent.get_ordered() != 0)
        say(15, "lane " + std::to_string(l) + " is free and in the middle of something");
      if (process == 0) continue;
      if (process > segment_.geometry().processes || segment_.process(process - 1).live.load() == 0)
        say(15, "lane " + std::to_string(l) + " belongs to process record " +
                    std::to_string(process - 1) + ", which is free");
    }
  }

  void pages() {
    for (std::uint32_t i = 0; i < store_.wait_pages.size(); ++i) {
      const WaitOwner owner(store_.wait_pages[i].owner.load());
      if (owner.word == 0) continue;
      if (!owner.taken() || owner.queue() >= store_.queue_count() ||
          owner.lane_plus_one() > store_.lanes())
        say(17, "page " + std::to_string(i) + " of waits belongs to no level and no lane");
    }
    for (std::uint32_t i = 0; i < store_.event_pages.size(); ++i) {
      const EventPageControl control(store_.event_controls[i].load());
      const std::string name = "page " + std::to_string(i) + " of events";
      // unless it was closed and its lane given back just now
      if (control.open() && !lane_taken(control.lane() + 1) &&
          store_.event_controls[i].load() == control.word)
        say(17, name + " is written by no lane");
      if (control.word != 0 && (control.turn() % store_.event_pages.size() != i ||
                                control.turn() > store_.header().event_turn.load()))
        say(17, name + " stands where its turn does not lead");
    }
  }

  void ids() {
    for (const shm::KeyIndex::Stray& stray : shm::KeyIndex::strays(segment_, CarriesId(store_, {})))
      say(24, "cell " + std::to_string(stray.cell) + " of the index of ids leads to " +
                  slot_name(stray.slot) + ", which carries no such id");
  }

  /// Jobs that have not ended and whose period is not over have an entry, and of two of a key that
  /// mind each other in every state the younger came after the elder's period. One that minds less
  /// may have come beside another at any time: a job is created before it asks for its key.
  void keys() {
    struct Owner {
      std::uint32_t slot;
      std::uint64_t created, end;
    };
    std::map<UniqueKey, std::vector<Owner>> owners;
    for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
      const JobRecord& job = store_.job(slot);
      const unsigned state = Control(job.control.load()).state();
      if (!is_unique(job) || !holds_job(state) || is_finished(state)) continue;
      const Uniqueness own{job.annex().uniqueness.get()};
      const std::uint64_t end = minded_until(job);
      if (end <= store_.now_ms()) continue;
      const UniqueKey key = key_of(job.annex());
      if (!shm::KeyIndex::has(segment_, key.lo, slot))
        say(25, slot_name(slot) + " has a unique key that the index does not know");
      if ((own.states() & Uniqueness::kLive) == Uniqueness::kLive)
        owners[key].push_back({slot, job.created_at.get(), end});
    }
    for (auto& [key, jobs] : owners) {
      std::ranges::sort(jobs, {}, &Owner::created);
      for (std::size_t i = 1; i < jobs.size(); ++i)
        if (jobs[i - 1].end > jobs[i].created)
          say(25, slot_name(jobs[i - 1].slot) + " and " + slot_name(jobs[i].slot) +
                      " have the same unique key");
    }
  }

  const shm::Segment& segment_;
  std::vector<std::uint64_t> depth_;
  std::vector<std::uint8_t> chunk_seen_;
  std::vector<bool> hinted_, lined_;
};

}  // namespace

std::vector<Finding> audit(const Store& store) { return Audit(store).run(); }

std::vector<Finding> audit_patiently(const Store& store) {
  std::vector<Finding> stays = audit(store);
  for (int look = 0; look < 4 && !stays.empty(); ++look) {
    const std::vector<Finding> again = audit(store);
    std::erase_if(stays, [&again](const Finding& f) {
      return std::find(again.begin(), again.end(), f) == again.end();
    });
  }
  return stays;
}

}  // namespace ojs_shm::engine
