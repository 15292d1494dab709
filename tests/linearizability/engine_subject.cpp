// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "engine/rules/smooth.hpp"
#include "engine/tables/job_look.hpp"
#include "tests/linearizability/subject.hpp"
#include "tests/support/process.hpp"
#include "tests/support/seat.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::test {
namespace {

using engine::JobId;
using engine::Outcome;

Answer answer_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk: return Answer::kOk;
    case Outcome::kEmpty: return Answer::kEmpty;
    case Outcome::kLost: return Answer::kLost;
    case Outcome::kNotFound: return Answer::kNotFound;
    case Outcome::kWrongState: return Answer::kWrongState;
    case Outcome::kBusy: return Answer::kBusy;
    default: return Answer::kRefused;
  }
}

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

constexpr std::uint32_t kLines = 2;
constexpr std::uint32_t kInterval = 3'600'000;  ///< ms: no history takes a part of it that matters
/// level 3 has none
const std::vector<engine::QueueOrder::LevelWeight> kWeights = {{0, 3}, {1, 2}, {2, 1}};

class EngineHands final : public Hands {
 public:
  EngineHands(const Segment& segment, Choice choice)
      : segment_(segment),
        handle_(must(internal::Handle::make(segment))),
        queue_(actor().ensure_queue("default")),
        choice_(choice) {}
  void choose() {
    if (choice_ == Choice::kAging)
      actor().order().set_aging(queue_,
                                engine::Aging(true, false, kInterval, 1, engine::Aging::kNoBest));
    if (choice_ == Choice::kWeighted &&
        actor().order().set_level_weights(queue_, kWeights) != Outcome::kOk)
      throw std::runtime_error("the weights were refused");
    if (choice_ == Choice::kSharded && actor().order().set_shards(queue_, kLines) != Outcome::kOk)
      throw std::runtime_error("the shards were refused");
  }

  void enqueue(Operation& operation, std::uint64_t tag, std::optional<JobId>& id) override {
    engine::NewJob job;
    char text[sizeof tag];
    std::memcpy(text, &tag, sizeof tag);
    job.type = "linear";
    job.args = {text, sizeof text};
    job.queue = queue_;
    job.rank = operation.level;
    job.id = id;
    job.retry.max_attempts = 1000;
    JobId made;
    operation.answer = answer_of(actor().enqueue(job, made));
    id = made;
  }
  Fetched fetch(Operation& operation) override {
    engine::Fetched got;
    got.body = &body_;
    const Outcome outcome = actor().fetch(queue_, 0, false, got);
    operation.answer = answer_of(outcome);
    if (outcome != Outcome::kOk) return {};
    operation.level = got.rank;
    Fetched fetched{0, got.available_at};
    std::memcpy(&fetched.tag, body_.data() + got.type_length, sizeof fetched.tag);
    held_[fetched.tag % kMostJobs] = {got.slot, got.word};
    return fetched;
  }
  void ack(Operation& operation) override {
    Held& held = held_[operation.job];
    operation.answer = answer_of(actor().ack(held.slot, held.word, {}));
  }
  void requeue(Operation& operation) override {
    const Held& held = held_[operation.job];
    operation.answer = answer_of(
        actor().set_back(held.slot, held.word, engine::Setback::kRequeue, nullptr).outcome);
  }
  void cancel(Operation& operation, JobId id) override {
    operation.answer = answer_of(actor().cancel(id, operation.found));
  }
  void reprioritize(Operation& operation, JobId id) override {
    operation.answer =
        answer_of(actor().reprioritize(id, operation.level, operation.previous, operation.found));
  }
  bool mend() override { return segment_.attachment()->repair_the_dead() != 0; }
  std::uint64_t since(JobId id) override {
    const std::uint32_t slot = engine::find_job(handle_->store(), id);
    return slot == engine::kNoIndex ? 0 : handle_->store().job(slot).available_at.get();
  }
  std::uint8_t home() override {
    return choice_ == Choice::kSharded ? static_cast<std::uint8_t>(actor().lane() % kLines) : 0;
  }
  Rules rules() override {
    Rules rules;
    if (choice_ == Choice::kSharded) rules.lines = kLines;
    if (choice_ == Choice::kAging) rules = {handle_->store().now_ms(), kInterval, {}};
    if (choice_ == Choice::kWeighted) {
      std::vector<std::uint32_t> weights;
      for (const auto& each : kWeights) weights.push_back(each.weight);
      for (const std::uint16_t level : engine::smooth_schedule(weights))
        rules.cycle.push_back(static_cast<std::uint8_t>(level));
      const auto next = engine::Turn(handle_->store().queue(queue_).turn.load()).next();
      std::rotate(rules.cycle.begin(), rules.cycle.begin() + next, rules.cycle.end());
    }
    return rules;
  }
  void grow_older() override {
    shm::Word& offset = handle_->store().segment().header().clock_offset_ms;
    if (choice_ == Choice::kAging)
      offset.store(offset.load() + kInterval + kInterval / 2, shm::Point::kNone);
  }

 private:
  engine::Actor& actor() { return handle_->actor(); }
  struct Held {
    std::uint32_t slot = 0;
    std::uint64_t word = 0;
  };
  Segment segment_;
  std::unique_ptr<internal::Handle> handle_;
  std::uint32_t queue_;
  Choice choice_;
  std::string body_;
  std::array<Held, kMostJobs> held_{};
};

/// The broker's seat is taken, so that no process repairs unless a history says so.
class EngineSubject final : public Subject {
 public:
  EngineSubject(Choice choice, bool chooses)
      : segment_(must(Segment::create(where_, options()))), choice_(choice) {
    if (chooses) EngineHands(segment_, choice).choose();
  }
  std::unique_ptr<Hands> attach() override {
    // A child of fork has to attach anew; the process that made the segment has done so.
    if (segment_.attachment()->forked())
      return std::make_unique<EngineHands>(must(Segment::attach(where_)), choice_);
    return std::make_unique<EngineHands>(segment_, choice_);
  }

 private:
  static SegmentOptions options() {
    SegmentOptions options;
    options.slots = 1024;
    options.max_queues = 4;
    options.max_handles = 24;
    options.max_body_bytes = 4096;
    return options;
  }
  ScratchDirectory folder_;
  SegmentName where_{"linear", folder_.path()};
  shm::LockFile seat_ = take_seat(where_);
  Segment segment_;
  Choice choice_;
};

}  // namespace

std::unique_ptr<Subject> engine_subject(Choice choice) {
  return std::make_unique<EngineSubject>(choice, true);
}
std::unique_ptr<Subject> engine_that_only_says(Choice choice) {
  return std::make_unique<EngineSubject>(choice, false);
}

}  // namespace ojs_shm::test
