// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ledger.hpp"

#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>

namespace ojs_shm::test {
namespace {

constexpr std::uint32_t kLives = 1U << 20, kNotes = 512, kSamples = 1U << 16;
constexpr unsigned kFenceBits = 40;
constexpr std::uint64_t kFenceMask = (std::uint64_t{1} << kFenceBits) - 1;

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t hash_of_id(std::string_view id) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash | 1;
}

constexpr std::size_t rounded(std::size_t bytes) { return (bytes + 4095) & ~std::size_t{4095}; }

}  // namespace

std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
std::uint64_t wall_ms() { return clock_ns(CLOCK_REALTIME) / 1'000'000U; }

std::string_view offence_name(Offence offence) {
  static constexpr std::string_view kNames[] = {"double dispatch",
                                                "dispatched when done",
                                                "completed twice",
                                                "stale ack accepted",
                                                "lost without reason",
                                                "fence not growing",
                                                "attempt too low",
                                                "corrupt payload",
                                                "unknown job",
                                                "two copies",
                                                "refused yet stored",
                                                "half a batch",
                                                "vanished",
                                                "two ends",
                                                "lost",
                                                "stuck",
                                                "end not kept",
                                                "died by itself",
                                                "wedged",
                                                "unexpected answer",
                                                "audit finding",
                                                "leak",
                                                "over a limit",
                                                "bad event",
                                                "bad copy"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Offence::kCount));
  return kNames[static_cast<std::size_t>(offence)];
}

struct Ledger::Head {
  LedgerWord<std::uint32_t> phase, next_life, next_note, next_sample;
  LedgerWord<std::int64_t> open;  // see backlog()
  LedgerWord<std::uint64_t> counts[static_cast<std::size_t>(Offence::kCount)];
  OffenceNote notes[kNotes];
  LedgerWord<std::uint32_t> samples[kSamples];
};

Ledger::Ledger(const LedgerShape& shape) : shape_(shape) {
  const std::size_t lanes_at = rounded(sizeof(Head));
  const std::size_t producers_at = lanes_at + rounded(sizeof(LaneBook) * shape.lanes);
  const std::size_t lives_at = producers_at + rounded(sizeof(ProducerBook) * shape.producers);
  const std::size_t jobs_at = lives_at + rounded(sizeof(Life) * kLives);
  bytes_ = jobs_at + rounded(sizeof(JobRecord) * shape.producers * shape.jobs_per_producer);
  const int fd = ::memfd_create("ledger", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes_)) != 0)
    throw std::system_error(errno, std::generic_category(), "ledger");
  void* base = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  ::close(fd);
  if (base == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "map the ledger");
  // The pages are zero, and zero is the first value of every word here.
  char* bytes = static_cast<char*>(base);
  head_ = reinterpret_cast<Head*>(bytes);
  lanes_ = reinterpret_cast<LaneBook*>(bytes + lanes_at);
  producers_ = reinterpret_cast<ProducerBook*>(bytes + producers_at);
  lives_ = reinterpret_cast<Life*>(bytes + lives_at);
  jobs_ = reinterpret_cast<JobRecord*>(bytes + jobs_at);
}

Ledger::~Ledger() { ::munmap(head_, bytes_); }

Phase Ledger::phase() const { return static_cast<Phase>(head_->phase.load()); }
void Ledger::set_phase(Phase phase) { head_->phase.store(static_cast<std::uint32_t>(phase)); }

std::uint32_t Ledger::begin_life(std::uint32_t lane) {
  const std::uint32_t number = head_->next_life.fetch_add(1) + 1;
  if (number >= kLives) throw std::runtime_error("the ledger has no page for another life");
  lives_[number].lane.store(lane);
  lives_[number].born_ns.store(monotonic_ns());
  return number;
}

bool Ledger::take_sequences(std::uint32_t producer, std::uint32_t count, std::uint64_t& first) {
  ProducerBook& book = producers_[producer];
  // One life at a time writes this word, so a load and a store will do.
  first = book.next_sequence.load();
  if (first + count > book.first_sequence.load() + shape_.jobs_per_producer) return false;
  book.next_sequence.store(first + count);
  return true;
}

JobRecord* Ledger::find(PayloadKey key) const {
  if (key.producer >= shape_.producers) return nullptr;
  const ProducerBook& book = producers_[key.producer];
  const std::uint64_t first = book.first_sequence.load();
  if (key.sequence < first || key.sequence >= book.next_sequence.load()) return nullptr;
  return &jobs_[key.producer * shape_.jobs_per_producer + (key.sequence - first)];
}

void Ledger::enqueue_begins(PayloadKey key, std::uint32_t marks, std::uint32_t batch_size,
                            std::uint32_t place) {
  JobRecord& job = *find(key);
  job.enqueued_ns.store(monotonic_ns());
  job.marks.store(marks);
  job.batch.store(batch_size > 1 ? batch_size << 16 | place : 0);
  job.enqueue.store(static_cast<std::uint32_t>(EnqueueMark::kAttempted));
}

void Ledger::enqueue_returned(PayloadKey key, std::uint32_t life, std::string_view id) {
  JobRecord& job = *find(key);
  std::uint64_t known = 0;
  if (!job.id_hash.compare_exchange_strong(known, hash_of_id(id)) && known != hash_of_id(id))
    accuse(Offence::kTwoCopies, life, key,
           fmt::format("enqueue returned {}, a worker saw another id", id));
  job.enqueue.store(static_cast<std::uint32_t>(EnqueueMark::kReturned));
  if ((job.marks.load() & kMayDrop) == 0) head_->open.fetch_add(1);
}

void Ledger::enqueue_refused(PayloadKey key) {
  find(key)->enqueue.store(static_cast<std::uint32_t>(EnqueueMark::kRefused));
}

bool Ledger::dispatched(PayloadKey key, Holder holder, const Dispatch& dispatch) {
  JobRecord& job = *find(key);
  std::uint64_t before = job.holding.load();
  const std::uint64_t mine =
      std::uint64_t{holder.token()} << kFenceBits | (dispatch.fence & kFenceMask);
  do {
    if ((before & kFenceMask) == dispatch.fence) {
      accuse(Offence::kFenceNotGrowing, holder.life, key,
             fmt::format("fence {} seen twice", dispatch.fence));
      break;
    }
    if ((before & kFenceMask) > dispatch.fence) {
      // The caller was stopped between its fetch and here. A newer attempt is right only if its own
      // lease is over.
      if (wall_ms() < dispatch.lease_end_ms)
        accuse(Offence::kDoubleDispatch, holder.life, key,
               fmt::format("fence {} was given out while the lease of {} ran", before & kFenceMask,
                           dispatch.fence));
      return false;
    }
  } while (!job.holding.compare_exchange_weak(before, mine));

  const std::uint64_t last_lease_end = job.lease_end_ms.exchange(dispatch.lease_end_ms);
  std::uint64_t known = 0;
  if (!job.id_hash.compare_exchange_strong(known, hash_of_id(dispatch.id)) &&
      known != hash_of_id(dispatch.id))
    accuse(Offence::kTwoCopies, holder.life, key, fmt::format("came out as {}", dispatch.id));
  if (job.completions.load() != 0)
    accuse(Offence::kDispatchedWhenDone, holder.life, key,
           fmt::format("acked, now attempt {}", dispatch.attempt));
  if ((job.marks.load() & kBuryReturned) != 0)
    accuse(Offence::kDispatchedWhenDone, holder.life, key,
           fmt::format("buried, now attempt {}", dispatch.attempt));

  if (const auto token = static_cast<std::uint32_t>(before >> kFenceBits); token != 0) {
    const std::uint64_t kill_sent = lives_[token >> 4].kill_sent_ns.load();
    if (kill_sent != 0 && kill_sent <= dispatch.fetched_ns) {
      const std::uint64_t micros = (dispatch.fetched_ns - kill_sent) / 1000;
      head_->samples[head_->next_sample.fetch_add(1) % kSamples].store(
          static_cast<std::uint32_t>(std::min<std::uint64_t>(micros, UINT32_MAX)));
    } else if (wall_ms() >= last_lease_end) {
      lanes_[lives_[holder.life].lane.load()].takeovers.fetch_add(1);
    } else {
      accuse(
          Offence::kDoubleDispatch, holder.life, key,
          fmt::format("held by life {} thread {} (fence {}, {} ms of its lease left), now fence {}",
                      token >> 4, token & 15, before & kFenceMask, last_lease_end - wall_ms(),
                      dispatch.fence));
    }
  }
  const std::uint32_t seen = job.dispatches.fetch_add(1) + 1;
  if (dispatch.attempt + job.requeues.load() < seen)
    accuse(Offence::kAttemptTooLow, holder.life, key,
           fmt::format("attempt {} at dispatch {} after {} requeues", dispatch.attempt, seen,
                       job.requeues.load()));
  return true;
}

void Ledger::lease_extended(PayloadKey key, std::uint64_t lease_end_ms) {
  find(key)->lease_end_ms.store(lease_end_ms);
}

bool Ledger::released(PayloadKey key, Holder holder, std::uint64_t fence) {
  std::uint64_t mine = std::uint64_t{holder.token()} << kFenceBits | (fence & kFenceMask);
  return find(key)->holding.compare_exchange_strong(mine, fence & kFenceMask);
}

void Ledger::ack_begins(PayloadKey key) { find(key)->acks.fetch_add(1); }
void Ledger::ack_failed(PayloadKey key) { find(key)->acks.fetch_sub(1); }
void Ledger::requeue_begins(PayloadKey key) { find(key)->requeues.fetch_add(1); }
void Ledger::revival_begins(PayloadKey key) {
  find(key)->requeues.fetch_add(find(key)->dispatches.load());
}

void Ledger::mark(PayloadKey key, std::uint32_t marks) {
  const std::uint32_t before = find(key)->marks.fetch_or(marks);
  constexpr std::uint32_t kEnds = kCancelReturned | kDiscardReturned | kBuryReturned;
  if ((marks & kEnds) != 0 && (before & kMayDrop) == 0) head_->open.fetch_sub(1);
}

void Ledger::ack_returned(PayloadKey key, Holder holder, bool was_newest) {
  if (!was_newest)
    accuse(Offence::kStaleAckAccepted, holder.life, key,
           "a newer attempt had begun before this ack");
  JobRecord& job = *find(key);
  if (job.completions.fetch_add(1) != 0) accuse(Offence::kCompletedTwice, holder.life, key, "");
  if ((job.marks.load() & kMayDrop) == 0) head_->open.fetch_sub(1);
}

std::uint32_t Ledger::at_work(std::uint32_t limit) const {
  const auto look = [&] {
    std::vector<std::uint64_t> permits;
    for (std::uint32_t lane = 0; lane < shape_.lanes; ++lane)
      for (const auto& thread : lanes_[lane].in_flight)
        for (const InFlight& held : thread)
          for (const auto& word : held.permits) {
            const std::uint64_t permit = word.load();
            if (permit >> 40 != limit ||
                lives_[permit >> 20 & (kLives - 1)].kill_sent_ns.load() != 0)
              continue;
            const JobRecord* const job = find(held.key());
            if (job != nullptr && (job->marks.load() & kCancelAttempted) == 0)
              permits.push_back(permit);
          }
    return permits;
  };
  // What two looks in a row find was so between them.
  for (auto seen = look();;) {
    auto again = look();
    if (again == seen) return static_cast<std::uint32_t>(seen.size());
    seen = std::move(again);
  }
}

void Ledger::told_lost(PayloadKey key, Holder holder, std::uint64_t lease_end_ms, bool was_newest) {
  if (!was_newest || wall_ms() >= lease_end_ms || (find(key)->marks.load() & kCancelAttempted) != 0)
    return;
  accuse(Offence::kLostWithoutReason, holder.life, key,
         fmt::format("{} ms of lease left", lease_end_ms - wall_ms()));
}

void Ledger::accuse(Offence offence, std::uint32_t life, PayloadKey key, std::string_view text) {
  head_->counts[static_cast<std::size_t>(offence)].fetch_add(1);
  const std::uint32_t place = head_->next_note.fetch_add(1);
  if (place >= kNotes) return;  // counted all the same; the first ones tell the story
  OffenceNote& note = head_->notes[place];
  note.at_ns = monotonic_ns();
  note.key = key;
  std::memcpy(note.text, text.data(), std::min(text.size(), sizeof note.text - 1));
  note.life.store(life);
  // last: a note of a killed writer stays unread
  note.offence.store(static_cast<std::uint32_t>(offence) + 1);
}

std::uint64_t Ledger::offences(Offence offence) const {
  return head_->counts[static_cast<std::size_t>(offence)].load();
}

std::uint64_t Ledger::offences() const {
  std::uint64_t all = 0;
  for (const auto& count : head_->counts) all += count.load();
  return all;
}

std::vector<const OffenceNote*> Ledger::notes() const {
  std::vector<const OffenceNote*> notes;
  for (const OffenceNote& note : head_->notes)
    if (note.offence.load() != 0) notes.push_back(&note);
  return notes;
}

std::vector<std::uint32_t> Ledger::recoveries() const {
  std::vector<std::uint32_t> samples(std::min<std::uint32_t>(head_->next_sample.load(), kSamples));
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = head_->samples[i].load();
  std::sort(samples.begin(), samples.end());
  return samples;
}

std::uint64_t Ledger::sum(LedgerWord<std::uint64_t> LaneBook::*counter) const {
  std::uint64_t sum = 0;
  for (std::uint32_t lane = 0; lane < shape_.lanes; ++lane) sum += (lanes_[lane].*counter).load();
  return sum;
}

std::uint64_t Ledger::backlog() const {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(head_->open.load(), 0));
}

LedgerVerdict Ledger::judge(const std::vector<PayloadKey>& present) {
  LedgerVerdict verdict;
  verdict.unseen_attempts = sum(&LaneBook::unseen_attempts);
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> still_there;
  for (const PayloadKey& key : present) {
    if (++still_there[{key.producer, key.sequence}] == 2)
      accuse(Offence::kTwoCopies, 0, key, "twice in the segment");
  }
  for (std::uint32_t producer = 0; producer < shape_.producers; ++producer) {
    const ProducerBook& book = producers_[producer];
    std::uint32_t batch_members_out = 0;
    for (std::uint64_t sequence = book.first_sequence.load(); sequence < book.next_sequence.load();
         ++sequence) {
      const PayloadKey key{producer, sequence};
      const JobRecord& job = *find(key);
      const auto enqueue = static_cast<EnqueueMark>(job.enqueue.load());
      const std::uint32_t marks = job.marks.load();
      const bool seen = job.dispatches.load() != 0 ||
                        (marks & (kCancelReturned | kDiscardReturned | kBuryReturned)) != 0;
      // A producer killed after its enqueue_batch may have noted only the first of the ids that it
      // got. Of a batch that may be dropped some may have come out before the others went.
      const bool may_drop = (marks & kMayDrop) != 0;
      if (const std::uint32_t batch = job.batch.load();
          batch != 0 && enqueue != EnqueueMark::kRefused && !may_drop) {
        const std::uint32_t size = batch >> 16, place = batch & 0xFFFF;
        if (place == 0) batch_members_out = 0;
        batch_members_out += seen || enqueue == EnqueueMark::kReturned ? 1 : 0;
        if (place + 1 == size && batch_members_out != 0 && batch_members_out != size)
          accuse(Offence::kHalfBatch, 0, key,
                 fmt::format("{} of {} came out", batch_members_out, size));
      }
      if (enqueue == EnqueueMark::kNone) continue;
      if (enqueue == EnqueueMark::kRefused) {
        ++verdict.refused;
        if (seen) accuse(Offence::kRefusedYetStored, 0, key, "");
        continue;
      }
      ++(enqueue == EnqueueMark::kReturned ? verdict.returned : verdict.attempted_only);
      const bool completed = job.completions.load() != 0;
      verdict.maybe_dropped += may_drop && !completed && (marks & kCancelReturned) == 0 ? 1 : 0;
      if (enqueue == EnqueueMark::kAttempted && !seen) continue;  // killed before it took effect
      if (completed && (marks & kCancelReturned) != 0)
        accuse(Offence::kTwoEnds, 0, key, "acked and cancelled");
      if (completed && (marks & kBuryReturned) != 0)
        accuse(Offence::kTwoEnds, 0, key, "acked and buried");
      if (completed)
        ++verdict.completed;
      else if (job.acks.load() != 0)
        ++verdict.killed_in_ack;
      else if ((marks & (kCancelReturned | kCancelAttempted)) != 0)
        ++verdict.cancelled;
      else if ((marks & (kBuryReturned | kBuryAttempted)) != 0)
        ++verdict.buried;
      else if ((marks & (kDiscardReturned | kMayDiscard | kMayExpire)) != 0)
        ++verdict.discarded;
      else if (may_drop)
        ++verdict.dropped;
      else if (!still_there.contains({producer, sequence})) {
        ++verdict.lost;
        accuse(Offence::kLost, 0, key,
               fmt::format("enqueue {}, {} dispatches, batch {:#x}",
                           enqueue == EnqueueMark::kReturned ? "returned" : "attempted",
                           job.dispatches.load(), job.batch.load()));
      }
    }
  }
  return verdict;
}

void Ledger::begin_round() {
  head_->open.store(0);
  for (std::uint32_t producer = 0; producer < shape_.producers; ++producer) {
    ProducerBook& book = producers_[producer];
    const std::uint64_t used = book.next_sequence.load() - book.first_sequence.load();
    std::memset(static_cast<void*>(&jobs_[producer * shape_.jobs_per_producer]), 0,
                used * sizeof(JobRecord));
    book.first_sequence.store(book.next_sequence.load());
  }
}

}  // namespace ojs_shm::test
