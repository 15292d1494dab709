// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <stdexcept>

#include "shm/member.hpp"
#include "tests/linearizability/subject.hpp"
#include "tests/support/process.hpp"
#include "worker_api/attachment.hpp"

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

class EngineHands final : public Hands {
 public:
  explicit EngineHands(const Segment& segment)
      : segment_(segment), handle_(must(internal::Handle::make(segment))), queue_(actor().ensure_queue("default")) {}

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
    operation.answer = answer_of(actor().set_back(held.slot, held.word, engine::Setback::kRequeue, nullptr).outcome);
  }
  void cancel(Operation& operation, JobId id) override {
    operation.answer = answer_of(actor().cancel(id, operation.found));
  }
  void reprioritize(Operation& operation, JobId id) override {
    operation.answer = answer_of(actor().reprioritize(id, operation.level, operation.previous, operation.found));
  }
  bool mend() override { return segment_.attachment()->repair_the_dead() != 0; }
  std::uint64_t since(JobId id) override {
    const std::uint32_t slot = handle_->store().find_job(id);
    return slot == engine::kNoIndex ? 0 : handle_->store().job(slot).available_at.get();
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
  std::string body_;
  std::array<Held, kMostJobs> held_{};
};

/// The broker's seat is taken, so that nobody repairs unless a history says so.
class EngineSubject final : public Subject {
 public:
  EngineSubject() : segment_(must(Segment::create(where_, options()))) {
    if (!seat_.open(segment_.path(), true, 0, {}).empty() || !seat_.try_lock(shm::kBrokerSeat))
      throw std::runtime_error("the broker's seat is taken");
  }
  std::unique_ptr<Hands> attach() override {
    // A child of fork has to attach anew; the process that made the segment has done so.
    if (segment_.attachment()->forked()) return std::make_unique<EngineHands>(must(Segment::attach(where_)));
    return std::make_unique<EngineHands>(segment_);
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
  Segment segment_;
  shm::LockFile seat_;
};

}  // namespace

std::unique_ptr<Subject> engine_subject() { return std::make_unique<EngineSubject>(); }

}  // namespace ojs_shm::test
