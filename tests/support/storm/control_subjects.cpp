// SPDX-License-Identifier: Apache-2.0
#include "tests/support/storm/control_subjects.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <boost/interprocess/ipc/message_queue.hpp>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace ojs_shm::test {
namespace {

namespace bip = boost::interprocess;

constexpr std::size_t kMessages = 1024, kMessageBytes = 512;

/// One end of a pipe of messages; `put` and `take` answer false when it is full or empty.
class Pipe {
 public:
  virtual ~Pipe() = default;
  virtual bool put(std::string_view message) = 0;
  virtual bool take(std::string& message) = 0;
};

/// The life of producers and workers of either control: put, take, note, and an acknowledgement
/// that is only a note, for neither of them knows any.
class ControlSubject : public Subject {
 public:
  void produce(Lane& lane) override {
    const auto pipe = open();
    Dice dice(lane.seed);
    std::string body;
    while (!lane.asked_to_leave()) {
      PayloadKey key{lane.member, 0};
      if (!lane.ledger.take_sequences(lane.member, 1, key.sequence)) return wait_for_the_end(lane);
      body.clear();
      write_payload(body, key, name(), dice.below(kMessageBytes - 80));
      lane.ledger.enqueue_begins(key, 0);
      while (!pipe->put(body)) {
        lane.step();
        if (lane.asked_to_leave()) return lane.ledger.enqueue_refused(key);
        pause();
      }
      lane.ledger.enqueue_returned(key, lane.life, body);
      lane.book().returned.fetch_add(1);
      lane.step();
    }
  }

  void work(Lane& lane) override {
    const auto pipe = open();
    std::string body;
    while (!lane.asked_to_leave()) {
      lane.step();
      if (!pipe->take(body)) {
        pause();
        continue;
      }
      const std::uint64_t now = monotonic_ns();
      const auto key = judge_payload(body, name());
      JobRecord* const job = key ? lane.ledger.find(*key) : nullptr;
      if (job == nullptr) {
        lane.accuse(key ? Offence::kUnknownJob : Offence::kCorruptPayload,
                    key.value_or(PayloadKey{}), "");
        continue;
      }
      const Holder me{lane.life, 0};
      const std::uint64_t fence = job->dispatches.load() + 1;
      lane.ledger.dispatched(*key, me,
                             {fence, UINT64_MAX, now, static_cast<std::uint32_t>(fence), body});
      lane.book().dispatched.fetch_add(1);
      const bool newest = lane.ledger.released(*key, me, fence);
      lane.ledger.ack_begins(*key);
      lane.ledger.ack_returned(*key, me, newest);
      lane.book().completed.fetch_add(1);
    }
  }

  bool drained(const Ledger& ledger) override {
    const std::uint64_t dispatched = ledger.sum(&LaneBook::dispatched);
    if (dispatched != last_dispatched_) {
      last_dispatched_ = dispatched;
      since_ns_ = monotonic_ns();
    }
    return monotonic_ns() - since_ns_ > 500'000'000U;
  }

 protected:
  virtual std::unique_ptr<Pipe> open() = 0;

 private:
  static void pause() {
    const timespec a_moment{0, 20'000};
    ::nanosleep(&a_moment, nullptr);
  }
  static void wait_for_the_end(Lane& lane) {
    while (!lane.asked_to_leave()) {
      lane.step();
      pause();
    }
  }
  std::uint64_t last_dispatched_ = 0, since_ns_ = monotonic_ns();
};

// --- Boost.Interprocess message_queue ------------------------------------------------------------

class BoostPipe : public Pipe {
 public:
  explicit BoostPipe(const std::string& name) : queue_(bip::open_only, name.c_str()) {}
  // A mutex whose owner died makes every later call throw (or, as Boost is configured, block).
  // Neither ever ends.
  bool put(std::string_view message) override {
    try {
      return queue_.try_send(message.data(), message.size(), 0);
    } catch (const bip::interprocess_exception&) {
      return false;
    }
  }
  bool take(std::string& message) override {
    message.resize(kMessageBytes);
    bip::message_queue::size_type size = 0;
    unsigned priority = 0;
    try {
      if (!queue_.try_receive(message.data(), message.size(), size, priority)) return false;
    } catch (const bip::interprocess_exception&) {
      return false;
    }
    message.resize(size);
    return true;
  }

 private:
  bip::message_queue queue_;
};

class BoostQueueSubject : public ControlSubject {
 public:
  explicit BoostQueueSubject(std::string name) : queue_name_(std::move(name)) {}
  std::string name() const override { return "boost::interprocess::message_queue"; }
  void create() override {
    bip::message_queue queue(bip::create_only, queue_name_.c_str(), kMessages, kMessageBytes);
  }
  void remove() noexcept override { bip::message_queue::remove(queue_name_.c_str()); }

 protected:
  std::unique_ptr<Pipe> open() override { return std::make_unique<BoostPipe>(queue_name_); }

 private:
  std::string queue_name_;
};

// --- Vyukov's ring -------------------------------------------------------------------------------

struct VyukovCell {
  LedgerWord<std::uint64_t> turn;
  std::uint32_t size;
  char bytes[kMessageBytes];
};

struct VyukovRing {
  alignas(128) LedgerWord<std::uint64_t> head;
  alignas(128) LedgerWord<std::uint64_t> tail;
  alignas(128) VyukovCell cells[kMessages];
};

class VyukovPipe : public Pipe {
 public:
  explicit VyukovPipe(const std::string& name) {
    const int fd = ::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), name);
    void* base = ::mmap(nullptr, sizeof(VyukovRing), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (base == MAP_FAILED) throw std::system_error(errno, std::generic_category(), name);
    ring_ = static_cast<VyukovRing*>(base);
  }
  ~VyukovPipe() override { ::munmap(ring_, sizeof(VyukovRing)); }
  VyukovPipe(const VyukovPipe&) = delete;
  VyukovPipe& operator=(const VyukovPipe&) = delete;

  bool put(std::string_view message) override {
    std::uint64_t ticket = ring_->tail.load();
    for (;;) {
      VyukovCell& cell = ring_->cells[ticket % kMessages];
      const std::uint64_t turn = cell.turn.load();
      if (turn == ticket) {
        if (!ring_->tail.compare_exchange_weak(ticket, ticket + 1)) continue;
        std::memcpy(cell.bytes, message.data(), message.size());
        cell.size = static_cast<std::uint32_t>(message.size());
        cell.turn.store(ticket + 1);
        return true;
      }
      if (turn < ticket) return false;
      ticket = ring_->tail.load();
    }
  }
  bool take(std::string& message) override {
    std::uint64_t ticket = ring_->head.load();
    for (;;) {
      VyukovCell& cell = ring_->cells[ticket % kMessages];
      const std::uint64_t turn = cell.turn.load();
      if (turn == ticket + 1) {
        if (!ring_->head.compare_exchange_weak(ticket, ticket + 1)) continue;
        message.assign(cell.bytes, cell.size);
        cell.turn.store(ticket + kMessages);
        return true;
      }
      if (turn <= ticket) return false;
      ticket = ring_->head.load();
    }
  }

 private:
  VyukovRing* ring_;
};

class VyukovSubject : public ControlSubject {
 public:
  explicit VyukovSubject(const std::string& name) : shm_name_("/" + name) {}
  std::string name() const override { return "Vyukov ring"; }
  void create() override {
    const int fd = ::shm_open(shm_name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(VyukovRing)) != 0)
      throw std::system_error(errno, std::generic_category(), shm_name_);
    void* base = ::mmap(nullptr, sizeof(VyukovRing), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (base == MAP_FAILED) throw std::system_error(errno, std::generic_category(), shm_name_);
    auto* const ring = static_cast<VyukovRing*>(base);
    for (std::uint64_t i = 0; i < kMessages; ++i) ring->cells[i].turn.store(i);
    ::munmap(base, sizeof(VyukovRing));
  }
  void remove() noexcept override { ::shm_unlink(shm_name_.c_str()); }

 protected:
  std::unique_ptr<Pipe> open() override { return std::make_unique<VyukovPipe>(shm_name_); }

 private:
  std::string shm_name_;
};

}  // namespace

std::unique_ptr<Subject> boost_queue_subject(const std::string& name) {
  return std::make_unique<BoostQueueSubject>(name);
}
std::unique_ptr<Subject> vyukov_ring_subject(const std::string& name) {
  return std::make_unique<VyukovSubject>(name);
}

}  // namespace ojs_shm::test
