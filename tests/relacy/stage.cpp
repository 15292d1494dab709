// SPDX-License-Identifier: Apache-2.0
#include "tests/relacy/stage.hpp"

#include "engine/tables/job_look.hpp"

#include <optional>

namespace ojs_shm::test {

using engine::Outcome;
using shm::Point;

namespace {
constexpr std::uint64_t kFar = 1ULL << 42;  ///< ms; later than any test
constexpr std::uint64_t kLater = 1ULL << 41;
constexpr std::uint32_t kLeaseMs = 60'000;
constexpr engine::JobId kSame{0x0199'0000'0000'7000, 0x8000'0000'0000'0002};

engine::NewJob telling(unsigned number, const std::string& text) {
  engine::NewJob job;
  job.type = "t";
  job.args = text;
  job.rank = 1;
  job.expires_at = kFar + number;
  return job;
}
std::string text_of(std::uint64_t number) { return "[" + std::to_string(number) + "]"; }
}  // namespace

Stage::Stage() : world_(false) {}

void Stage::begin_anew() {
  world_.begin_anew();
  wrong_.clear();
  held_ = engine::Fetched{};
  held_.body = &body_;
  for (unsigned i = 0; i < 2; ++i) telling_[i] = engine::Fetched{}, telling_[i].body = &bodies_[i];
  extended_ = ended_ = waits_ = supervisor_sleeps_ = false;
  pool_limited_ = all_age_ = oversleeps_ = one_has_ended_ = false;
  overdue_ended_ = rung_ = accepted_ = brought_ = pushed_ = passed_ = 0;
}

void Stage::hold_one(std::uint32_t self) {
  const std::string text = text_of(7);
  engine::JobId id;
  if (world_.actor(self).enqueue(telling(7, text), id) != Outcome::kOk ||
      world_.actor(self).fetch(0, kLeaseMs, false, held_) != Outcome::kOk)
    wrong_ += "nothing to hold; ";
}

void Stage::extend(std::uint32_t self) {
  std::uint64_t until = 0;
  extended_ =
      world_.actor(self).heartbeat(held_.slot, held_.word, 2 * kLeaseMs, until) == Outcome::kOk;
}

void Stage::end_overdue(std::uint32_t self) {
  world_.actor(self).end_leases(0, world_.store().slots(), held_.deadline + 1, overdue_ended_);
}

void Stage::wait_for_it() {
  engine::JobRecord& job = world_.store().job(held_.slot);
  job.signals.fetch_or(engine::kWaited, Point::kWaitFlagSet);
  rung_ = world_.store().segment().header().completions[held_.slot % 64].load();
  const engine::Control control(job.control.load_seq_cst());
  waits_ = !engine::is_finished(control.state()) && !engine::is_exclusive(control.state());
}

void Stage::end_it(std::uint32_t self) {
  ended_ = world_.actor(self).ack(held_.slot, held_.word, {}) == Outcome::kOk;
  if (!ended_) wrong_ += "an ack was refused; ";
}

void Stage::put_telling(std::uint32_t self, unsigned number) {
  engine::JobId id;
  if (world_.actor(self).enqueue(telling(number, text_of(number)), id) != Outcome::kOk)
    wrong_ += "an enqueue was refused; ";
}

void Stage::end_telling(std::uint32_t self) {
  engine::Fetched& held = telling_[self % 2];
  if (world_.actor(self).fetch(0, 0, false, held) != Outcome::kOk) return;
  const std::string args = held.body->substr(held.type_length, held.args_length);
  if (args.size() < 3 || args.front() != '[') wrong_ += "a fetch returned '" + args + "'; ";
  if (world_.actor(self).ack(held.slot, held.word, args) != Outcome::kOk)
    wrong_ += "an ack was refused; ";
}

void Stage::look_at_all() {
  for (std::uint32_t slot = 0; slot < world_.store().slots(); ++slot) {
    const auto seen = engine::snapshot(world_.store(), slot);
    if (!seen || seen->expires_at < kFar) continue;
    const std::string text = text_of(seen->expires_at - kFar);
    const std::string_view args =
        std::string_view(seen->body).substr(seen->type_length, seen->args_length);
    if (args != text)
      wrong_ += "a snapshot of " + text + " has the args '" + std::string(args) + "'; ";
    const auto parts =
        engine::parts(seen->id, world_.store().segment().header().salt & ((1ULL << 56) - 1));
    if (!parts || parts->slot != slot || parts->generation != seen->generation)
      wrong_ += "a snapshot has the id of another life of its slot; ";
    if (seen->state() == engine::JobState::kCompleted &&
        (seen->result != text || seen->finished_at == 0))
      wrong_ += "a snapshot of " + text + " is completed with the result '" + seen->result + "'; ";
    if (seen->state() == engine::JobState::kActive && (seen->attempt != 1 || seen->started_at == 0))
      wrong_ += "a snapshot of " + text + " is active but has not started; ";
  }
}

void Stage::bring_the_same(std::uint32_t self) {
  const std::string text = text_of(self);
  engine::NewJob job = telling(self, text);
  job.id = kSame;
  engine::JobId id;
  const Outcome outcome = world_.actor(self).enqueue(job, id);
  ++brought_;
  if (outcome == Outcome::kOk)
    ++accepted_;
  else if (outcome != Outcome::kDuplicate)
    wrong_ += "an id was neither accepted nor refused; ";
}

void Stage::bring_one_that_ends(std::uint32_t self) {
  bring_the_same(self);
  end_telling(self);
  one_has_ended_ = true;
}

void Stage::push_numbered(std::uint32_t self, unsigned hints) {
  shm::Rings& rings = world_.actor(self).rings();
  const std::uint32_t ring = rings.ensure_unindexed(world_.store().queue(0).room_ring);
  for (; hints > 0; --hints)
    if (!rings.push(ring, shm::Hint(pushed_++, 1), nullptr, 0)) wrong_ += "a hint found no room; ";
}

/// A chunk is linked with its first cell filled, so one that passes the link does not find that one
/// empty; and who passes a hint finds the next one behind it.
void Stage::pass_numbered(std::uint32_t self, unsigned looks) {
  shm::Rings& rings = world_.actor(self).rings();
  const std::uint32_t ring = world_.store().queue(0).room_ring.load() - 1;
  for (; looks > 0; --looks) {
    const shm::Peeked head = rings.peek(ring);
    if (head.empty()) {
      if (shm::Place(head.head).cell() == 0 && passed_ != 0)
        wrong_ += "a chunk was linked without a hint; ";
      continue;
    }
    if (head.hint().word != shm::Hint(passed_, 1).word)
      wrong_ += "a hint was read that nobody pushed there; ";
    ++passed_;
    shm::Rings::retire(head);
  }
}

void Stage::put_for_later(std::uint32_t self) {
  const std::string text = text_of(8);
  engine::NewJob job = telling(8, text);
  job.scheduled_at = kLater;
  engine::JobId id;
  if (world_.actor(self).enqueue(job, id) != Outcome::kOk) wrong_ += "an enqueue was refused; ";
}

void Stage::supervise_until_later(std::uint32_t self) {
  shm::Header& header = world_.store().segment().header();
  rung_ = header.doorbell.load();
  header.sleeping_until_ms.exchange(kLater + 1, Point::kDoorbellRung);
  supervisor_sleeps_ = world_.actor(self).rings().peek(world_.store().header().timers_ring).empty();
}

std::string Stage::verdict() {
  if (pushed_ != 0) pass_numbered(World::kJanitor, pushed_);
  std::string text = wrong_;
  if (passed_ != pushed_) text += "a hint was lost; ";
  if (extended_ && overdue_ended_ != 0) text += "a lease was extended and ended; ";
  if (overdue_ended_ > 1) text += "a lease ended twice; ";
  if (ended_ && waits_ &&
      world_.store().segment().header().completions[held_.slot % 64].load() == rung_)
    text += "somebody waits for a job that has ended; ";
  const shm::Header& header = world_.store().segment().header();
  if (supervisor_sleeps_ && header.doorbell.load() == rung_)
    text += "the supervisor sleeps beside a timer; ";
  // once more when the slot of the first was used again before
  if (brought_ != 0 && accepted_ != 1 && !(one_has_ended_ && accepted_ == 2))
    text += "an id was accepted " + std::to_string(accepted_) + " times; ";
  text += settings_text();
  return text + world_.verdict();
}

}  // namespace ojs_shm::test
