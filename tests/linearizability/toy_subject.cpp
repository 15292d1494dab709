// SPDX-License-Identifier: Apache-2.0
// Small queues in anonymous shared memory, through the same door to atomics as the engine, so that
// the recorder switches between their steps too. One is right; each of the others is wrong in one
// way that a queue can be wrong.
#include <sys/mman.h>

#include <new>
#include <stdexcept>

#include "shm/atomics.hpp"
#include "shm/parking.hpp"
#include "tests/linearizability/subject.hpp"

namespace ojs_shm::test {
namespace {

using shm::Point;
using shm::Word;

constexpr std::uint64_t kPlaces = 1 << 20;
constexpr unsigned kLevels = 4;

struct Level {
  Word lock, head, tail;
  Word cell[kPlaces];
};
struct Shared {
  Word lock;
  Level level[kLevels];
};

class Locked {
 public:
  explicit Locked(Word& word) : word_(word) {
    for (unsigned look = 0; !word.cas_once(0, 1, Point::kNone); ++look)
      shm::wait_for_another(look % 256);  // never sleeps
  }
  ~Locked() { word_.store(0, Point::kNone); }
  Locked(const Locked&) = delete;

 private:
  Word& word_;
};

class ToyHands final : public Hands {
 public:
  ToyHands(Shared& shared, Flaw flaw) : shared_(shared), flaw_(flaw) {}

  void enqueue(Operation& operation, std::uint64_t tag, std::optional<engine::JobId>&) override {
    Level& level = shared_.level[operation.level];
    operation.answer = Answer::kOk;
    if (flaw_ == Flaw::kForgets) return put(level, tag);
    const Locked locked(lock_of(level));
    put(level, tag);
  }
  Fetched fetch(Operation& operation) override {
    if (flaw_ == Flaw::kEmptyEarly && shared_.lock.load() != 0) {
      operation.answer = Answer::kEmpty;
      return {};
    }
    std::optional<Locked> whole, one;
    if (flaw_ != Flaw::kLooksOnce && flaw_ != Flaw::kGivesTwice) whole.emplace(shared_.lock);
    operation.answer = Answer::kOk;
    for (std::uint8_t number = 0; number < kLevels; ++number) {
      operation.level = number;
      Level& level = shared_.level[number];
      if (flaw_ == Flaw::kLooksOnce) one.emplace(level.lock);
      if (std::uint64_t tag = 0; take(level, tag)) return {tag, 0};
      one.reset();
    }
    operation.answer = Answer::kEmpty;
    return {};
  }
  void ack(Operation& operation) override { operation.answer = Answer::kOk; }
  void requeue(Operation& operation) override { operation.answer = Answer::kRefused; }
  void cancel(Operation& operation, engine::JobId) override { operation.answer = Answer::kRefused; }
  void reprioritize(Operation& operation, engine::JobId) override {
    operation.answer = Answer::kRefused;
  }
  bool mend() override { return true; }
  std::uint64_t since(engine::JobId) override { return 0; }

 private:
  Word& lock_of(Level& level) { return flaw_ == Flaw::kLooksOnce ? level.lock : shared_.lock; }
  void put(Level& level, std::uint64_t tag) {
    const std::uint64_t tail = level.tail.load();
    level.cell[tail % kPlaces].store(tag, Point::kNone);
    level.tail.store(tail + 1, Point::kNone);
  }
  bool take(Level& level, std::uint64_t& tag) {
    const std::uint64_t head = level.head.load(), tail = level.tail.load();
    if (head >= tail) return false;
    if (flaw_ == Flaw::kTakesNewest) {
      tag = level.cell[(tail - 1) % kPlaces].load();
      level.tail.store(tail - 1, Point::kNone);
    } else {
      tag = level.cell[head % kPlaces].load();
      level.head.store(head + 1, Point::kNone);
    }
    return true;
  }
  Shared& shared_;
  Flaw flaw_;
};

class ToySubject final : public Subject {
 public:
  explicit ToySubject(Flaw flaw) : flaw_(flaw) {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    shared_ = static_cast<Shared*>(memory);  // all zero is an empty queue
  }
  ~ToySubject() override { ::munmap(shared_, sizeof(Shared)); }
  ToySubject(const ToySubject&) = delete;
  std::unique_ptr<Hands> attach() override { return std::make_unique<ToyHands>(*shared_, flaw_); }

 private:
  Flaw flaw_;
  Shared* shared_ = nullptr;
};

}  // namespace

std::unique_ptr<Subject> toy_subject(Flaw flaw) { return std::make_unique<ToySubject>(flaw); }

}  // namespace ojs_shm::test
