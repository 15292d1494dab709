// SPDX-License-Identifier: Apache-2.0
// What a run has to answer for when it is over.
#include <algorithm>
#include <bit>
#include <set>

#include "engine/audit/audit.hpp"
#include "tests/schedules/fibers.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

using engine::Outcome;

/// A lane that dies may take a turn with him, and no more.
std::string World::turns_text() const {
  std::int64_t ahead = 0;
  for (const Books& books : books_)
    ahead += static_cast<std::int64_t>(books.takes.size()) * (books.rank == 1   ? 1
                                                              : books.rank == 3 ? -1
                                                                                : 0);
  const auto allowed = static_cast<std::int64_t>(dead_.size()) * 2;
  return !turns_ || std::abs(ahead) <= allowed
             ? ""
             : "the turns were not even: " + std::to_string(ahead) + "; ";
}

std::string World::audit_text() const {
  std::string text;
  for (const engine::Finding& finding : engine::audit(*store_))
    text += "I" + std::to_string(finding.invariant) + " " + finding.text + "; ";
  return text;
}

/// The numbers of shards, a bit for each, that were in force at some instant of the call.
std::uint32_t World::shards_during(std::uint32_t by, std::uint64_t called,
                                   std::uint64_t returned) const {
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < shardings_.size(); ++i) {
    const bool begun = shardings_[i].called < returned;
    const bool over = !crossed_ && i + 1 < shardings_.size() &&
                      shardings_[i + 1].returned < called && ordered(shardings_[i + 1].by, by);
    if (begun && !over) found |= 1U << shardings_[i].shards;
  }
  return found;
}

/// In which the job stands, if that does not hang on when exactly the number of shards changed.
unsigned World::line_of(const Books& books) const {
  unsigned line = kUnknown;
  for (std::uint32_t left = shards_during(books.put_by, books.put_called,
                                          books.put_returned == 0 ? kNever : books.put_returned);
       left != 0; left &= left - 1) {
    const unsigned one = books.put_by % static_cast<unsigned>(std::countr_zero(left));
    if (line != kUnknown && line != one) return kUnknown;
    line = one;
  }
  return line;
}

/// Whether the fetch has to prefer `other`, when both are there: of two lines the one that comes
/// first from where the worker is at home, within a line the order of all queues.
bool World::goes_first(const Books& other, const Books& mine, const Take& take,
                       bool stood_before) const {
  constexpr std::uint32_t kNotSharded = 1U << 1;
  if (across_ && other.tenant != mine.tenant) return false;
  const unsigned others = line_of(other), own = line_of(mine);
  const bool known = others != kUnknown && own != kUnknown;
  const std::uint32_t shards = shards_during(take.by, take.called, take.returned);
  if ((!known || others != own) && shards != kNotSharded) {
    if (!known || !std::has_single_bit(shards)) return false;
    const unsigned home = take.by % static_cast<unsigned>(std::countr_zero(shards));
    return (others - home) % engine::kParts < (own - home) % engine::kParts;
  }
  if (other.rank != mine.rank) return other.rank < mine.rank;
  return stood_before && known && others == own && (!shares_ || other.tenant == mine.tenant);
}

/// Whether some job was certainly there, this one or that one, at each instant of the call; of two
/// queues, this one.
bool World::never_empty(const Empty& empty) const {
  std::uint64_t until = empty.called;
  for (bool further = true; further && until < empty.returned;) {
    further = false;
    for (const Books& books : books_) {
      if (books.queue != empty.queue) continue;
      if (books.put_returned == 0 || books.put_returned > until || !ordered(books.put_by, empty.by))
        continue;
      if (books.may_return || books.passed_over ||
          limited(static_cast<unsigned>(&books - books_.data())))
        continue;
      std::uint64_t leaves = books.cancel_called != 0 ? books.cancel_called : kNever;
      for (const Take& take : books.takes) leaves = std::min(leaves, take.called);
      if (pool_queues_ == 2 && leaves < empty.returned) continue;
      if (leaves > until) until = leaves, further = true;
    }
  }
  return until >= empty.returned;
}

/// The promise of a fetch, pair by pair: what was there all the time is not overtaken, and an empty
/// answer is true.
std::string World::order_text() const {
  std::string text;
  const auto there = [this](const Books& books, std::uint64_t since, std::uint64_t returned) {
    if (books.put_returned == 0 || books.put_returned > since || books.may_return ||
        books.passed_over)
      return false;
    if (books.cancel_called != 0 && books.cancel_called < returned) return false;
    return std::none_of(books.takes.begin(), books.takes.end(),
                        [&](const Take& take) { return take.called < returned; });
  };
  for (const Empty& empty : empties_)
    if (never_empty(empty)) text += "empty although something was there; ";
  for (unsigned x = 0; x < kJobs; ++x) {
    const Books& mine = books_[x];
    if (limited(x)) continue;  // it may have been held back
    if (turns_ || mine.may_return || mine.cancel_called != 0 || mine.move_called != 0) continue;
    for (const Take& take : mine.takes)
      for (unsigned y = 0; y < kJobs; ++y) {
        const Books& other = books_[y];
        if (limited(y)) continue;
        // What came before the job itself was there whenever the job was, however late the fetch
        // began to look.
        const bool before_it =
            ordered(other.put_by, mine.put_by) && there(other, mine.put_called, take.returned);
        const bool before_fetch =
            ordered(other.put_by, take.by) && there(other, take.called, take.returned);
        if (y != x && other.queue == mine.queue && other.move_called == 0 &&
            ((before_it && goes_first(other, mine, take, true)) ||
             (before_fetch && goes_first(other, mine, take, false))))
          text += "job " + std::to_string(x) + " overtook job " + std::to_string(y) + "; ";
      }
  }
  return text;
}

/// What no lane has touched comes in the order in which it was put in.
std::string World::batches_text(const std::vector<unsigned>& line) const {
  std::string text;
  for (const unsigned first : batches_) {
    const Books &one = books_[first], &two = books_[first + 1];
    const bool untouched =
        one.takes.empty() && two.takes.empty() && !one.may_return && !two.may_return;
    if (!untouched || one.drained == 0 || two.drained == 0) continue;
    if (std::find(line.begin(), line.end(), first) > std::find(line.begin(), line.end(), first + 1))
      text += "the batch of job " + std::to_string(first) + " came in another order; ";
  }
  return text;
}

/// A move that was answered with ok holds, unless a later one undid it: one that stands in line
/// before a job did not come after a call that began when that job had arrived.
std::string World::moves_text(const std::vector<unsigned>& line) const {
  std::string text;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const Books& books = books_[line[at]];
    if (!dead_.empty() || !books.takes.empty()) continue;
    for (const Move& lost : books.moves) {
      if (lost.rank == books.rank_at_the_end) continue;
      const bool undone =
          std::any_of(books.moves.begin(), books.moves.end(), [&](const Move& other) {
            return other.rank == books.rank_at_the_end && other.returned > lost.called;
          });
      const bool fits = std::none_of(
          line.begin() + static_cast<std::ptrdiff_t>(at) + 1, line.end(), [&](unsigned behind) {
            const Books& later = books_[behind];
            if (later.rank_at_the_end != books.rank_at_the_end || !later.takes.empty() ||
                later.moves.size() > 1 || line_of(later) != line_of(books) ||
                line_of(books) == kUnknown)
              return false;
            return (later.moves.empty() ? later.put_returned : later.moves[0].returned) <
                   lost.called;
          });
      if (!undone || !fits) text += "a move of job " + std::to_string(line[at]) + " was lost; ";
    }
  }
  return text;
}

std::string World::verdict() {
  note_what_the_dead_hold();
  if (dropping_ && !dead_.empty()) note_a_refused_drop();  // it may have died behind one
  for (const std::uint32_t lane : dead_) holds_[lane] = 0;
  std::string text;
  if (dropping_) {  // what was dropped is known only after the repair
    if (!dead_.empty()) repair();
    text = drop_text();
  }
  text += wrong_ + order_text() + turns_text();
  if (!dead_.empty() && !dropping_) repair();
  text += room_text() + tenants_text() + audit_text();
  bool sleeps = false;  // and no lane has woken it
  std::uint64_t woken = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if (!asleep_[lane] || was_dead(lane)) continue;
    (segment_.lane(lane).park.load() == parked_[lane] ? sleeps = true : ++woken != 0);
  }
  const std::uint64_t depth = engine::charged_jobs(store_->depth_charge(0));
  if (max_depth_ != 0 && depth > max_depth_ + returned_)
    text += "the bound was passed: " + std::to_string(depth) + "; ";
  for (std::uint32_t lane = 0; lane < kFibers && max_depth_ != 0 && depth >= max_depth_; ++lane) {
    engine::JobId id;
    if (!was_dead(lane) && actor(lane).enqueue(job_named(kJobs - 1, 3), id) == Outcome::kOk)
      return text + "a full queue took a job; ";
  }
  if (sleeps && depth > woken) text += "a worker sleeps beside a job; ";
  text += told_text() + checkpoint_text() + rate_text() + names_text();
  fire_cron(kJanitor);
  if (ends_workers_) silence();  // one that gave a sign in time has its job still
  end_silent_workers(kJanitor);
  const bool room_for_all = max_depth_ == 0 && store_->slots() == kSlots;
  const bool must_let_one_in = dead_.empty() && room_for_all && brought_ != 0 && !stand_still();
  if (accepted_ > 1 || (must_let_one_in && accepted_ == 0))
    text += std::to_string(accepted_) + " who brought one id were let in; ";
  engine::Actor& last = actor(kJanitor + 1);
  engine::Fetched& out = held_[kSecondJanitor];
  std::vector<unsigned> line;
  const std::uint32_t queues = queues_.empty() ? std::max(pool_queues_, 1U) : store_->max_queues();
  const auto one_left = [&last, &out, queues] {
    for (std::uint32_t queue = 0; queue < queues; ++queue)
      if (last.fetch(queue, 0, false, out) == Outcome::kOk) return true;
    return false;
  };
  while (one_left()) {
    const unsigned job = number_of(out);
    if (job >= kJobs) return text + "an unknown job was left; ";
    if (++books_[job].drained > 1)
      return text + "job " + std::to_string(job) + " came twice at the end; ";
    books_[job].rank_at_the_end = out.rank;
    if (out.rank > books_[job].raised_to)
      text += "job " + std::to_string(job) + " was raised, and fell again; ";
    line.push_back(job);
    if ((books_[job].half_fetched || books_[job].undelivered) &&
        store_->job(out.slot).attempt.get() != 1)
      text += "a fetch that reached no worker was counted; ";
    last.ack(out.slot, out.word, {});
  }
  text += workflow_text();
  text += unique_text(kJanitor + 1);
  for (unsigned job = 0; job < kJobs; ++job) {
    const Books& books = books_[job];
    const std::string name = "job " + std::to_string(job);
    if (max_depth_ != 0 && books.put_called != 0 && books.put_returned == 0 && books.drained != 0 &&
        dead_.empty())
      text += name + " was refused and is there; ";
    if (books.drained != 0 && books.ended) text += name + " came again after its end; ";
    if (books.drained != 0 && !books.takes.empty() && !books.may_return)
      text += name + " was there twice; ";
    const bool over = books.end_called || books.comes_back;
    if (books.put_returned != 0 && books.drained == 0 && !over && books.takes.empty())
      text += name + " is lost; ";
    const bool held = std::find(std::begin(holds_), std::end(holds_), static_cast<int>(job) + 1) !=
                      std::end(holds_);
    if (books.put_returned != 0 && books.drained == 0 && !books.takes.empty() && !over &&
        books.may_return && !held)
      text += name + " is lost after it was given back; ";
  }
  const auto seen = [this](unsigned job) {
    return books_[job].drained != 0 || !books_[job].takes.empty() ||
           (dropping_ && books_[job].ended);
  };
  for (const unsigned first : batches_)  // of one that never returned no drop is known
    if ((!dropping_ || dead_.empty()) && seen(first) != seen(first + 1))
      text += "half of the batch of job " + std::to_string(first) + " came out; ";
  text += crons_text() + workers_text() + batches_text(line) + moves_text(line) + ring_text() +
          audit_text();
  if (max_depth_ == 0 && tenant_depth_ == 0) return text;
  return text + bound_text() + tenant_bound_text() + audit_text();
}

/// No ring is claimed for packing, and every finished slot is listed, so that it will be used
/// again.
std::string World::ring_text() const {
  std::string text;
  for (std::uint32_t ring = 0; ring < segment_.geometry().rings; ++ring)
    if (segment_.ring(ring).splicer.load() != 0) text += "a ring stays claimed for packing; ";
  std::set<std::uint64_t> listed;
  for (std::uint32_t i = 0; i < segment_.geometry().chunks; ++i) {
    const shm::ChunkState state = shm::ChunkControl(segment_.chunk(i).control.load()).state();
    if (state == shm::ChunkState::kBatch || state == shm::ChunkState::kBatched)
      for (const shm::Word& cell : segment_.chunk(i).cell) listed.insert(cell.load());
  }
  for (std::uint32_t slot = 0; slot < store_->slots(); ++slot) {
    const engine::Control control(store_->job(slot).control.load());
    if (engine::is_finished(control.state()) &&
        !store_->job(slot).flags().has(engine::Policy::kDead) &&
        !listed.contains(shm::Hint(slot, control.tag()).word))
      text += "the finished slot " + std::to_string(slot) + " is not listed; ";
  }
  return text;
}

}  // namespace ojs_shm::test
