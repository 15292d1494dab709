// SPDX-License-Identifier: Apache-2.0
#include "tests/linearizability/recorder.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>

#include "shm/atomics.hpp"
#include "shm/parking.hpp"
#include "tests/support/process.hpp"
#include "tests/support/storm/dice.hpp"

namespace ojs_shm::test {

using shm::Access;
using shm::Point;

namespace {
constexpr unsigned kMostCalls = 64;               ///< of one process in one history
constexpr std::uint64_t kTagOfRound = kMostJobs;  ///< tag = round * kMostJobs + job

/// A number that processes share and wait for. The recorder's own: the hook is silent while it is
/// used.
class Signal {
 public:
  std::uint32_t get() const { return word_.load(); }
  void set(std::uint32_t value) {
    word_.store(value, Point::kNone);
    shm::futex_wake(word_, 64);
  }
  std::uint32_t add(std::uint32_t value) {
    const std::uint32_t before = word_.fetch_add(value, Point::kNone);
    shm::futex_wake(word_, 64);
    return before;
  }
  std::uint32_t clear(std::uint32_t bits) {
    const std::uint32_t before = word_.fetch_and(~bits, Point::kNone);
    shm::futex_wake(word_, 64);
    return before & ~bits;
  }
  /// Returns when it has another value; soon in any case.
  void wait_while(std::uint32_t value) const {
    if (get() == value) shm::futex_wait(word_, value, 100);
  }

 private:
  shm::Half word_{0};
};
}  // namespace

/// What the processes share. Not reached by the hook.
struct Recorder::Board {
  struct Sheet {
    Signal count;
    Operation calls[kMostCalls];
  };
  struct Known {
    Signal yes;
    engine::JobId id;
    std::uint64_t since = 0;  ///< as a process that fetched it was told
  };
  Plan plan;
  unsigned processes = 0;
  std::uint32_t victim = 0, doomed_writes = 0;
  Signal round;
  Signal turn;     ///< who may run, when they run one at a time
  Signal running;  ///< a bit for each that is not done
  Signal pulse;    ///< grows with each call that ended, and when one takes long
  Signal waiting;  ///< how many wait for it
  Signal jobs;     ///< numbers given out
  Signal dying, mended;
  std::uint64_t strange_tag = 0;
  Known known[kMostJobs];
  Sheet sheet[kMostProcesses];

  void took(Operation& operation, const Hands::Fetched& fetched, std::uint32_t in_round) {
    if (operation.answer != Answer::kOk) return;
    if (fetched.tag / kTagOfRound != in_round) strange_tag = fetched.tag + 1;
    operation.job = static_cast<std::uint8_t>(fetched.tag % kTagOfRound);
    known[operation.job].since = fetched.since;
  }
};

/// One process in one history.
class Recorder::Player {
 public:
  Player(Board& board, Hands& hands, unsigned me, std::uint32_t round)
      : board_(board),
        hands_(hands),
        me_(me),
        round_(round),
        dice_(board.plan.seed ^ (me + 1) * 0x9E3779B97F4A7C15ULL),
        doomed_(board.plan.crash && board.victim == me ? board.doomed_writes : 0) {}

  void play() {
    player_ = this;
    plan_delay();
    if (!board_.plan.free_running) await_turn();
    for (unsigned i = 0; i < board_.plan.calls; ++i) {
      if (mend_if_needed()) continue;
      call_something();
    }
    board_.waiting.add(1);  // so that the others do not wait for us
    while (i_mend() && (board_.running.get() >> board_.victim & 1) != 0)
      board_.plan.free_running ? board_.running.wait_while(board_.running.get()) : give_turn();
    board_.waiting.add(~0U);
    mend_if_needed();
    while (held_ > 0) end_one(Kind::kAck);
    leave();
    player_ = nullptr;
  }

 private:
  // ---- switching and dying: called before, and for a write also after, each access to a shared
  // word
  static void on_access(Access access, Point, const void*) {
    shm::thread_hook = nullptr;
    player_->accessed(access);
    shm::thread_hook = on_access;
  }
  void accessed(Access access) {
    if (access == Access::kWritten) {
      if (doomed_ != 0 && --doomed_ == 0) die();
      return;
    }
    if (++accesses_ % 200 == 0) board_.pulse.add(1);  // it may be waiting for one that waits for us
    if (--until_delay_ != 0) return;
    delay();
    plan_delay();
  }
  void plan_delay() { until_delay_ = dice_.any_magnitude(1, 80); }
  void delay() {
    if (!board_.plan.free_running) return give_turn();
    if (dice_.chance(0.3))
      await_others();
    else
      for (std::uint64_t spins = dice_.any_magnitude(1, 300); spins > 0; --spins) shm::pause_cpu();
  }
  /// Until one of the others has got something done. The last one awake does not wait.
  void await_others() {
    const std::uint32_t pulse = board_.pulse.get();
    const std::uint32_t asleep = board_.waiting.add(1);
    if (asleep + 1 < static_cast<unsigned>(std::popcount(board_.running.get())))
      board_.pulse.wait_while(pulse);
    board_.waiting.add(~0U);
  }
  [[noreturn]] void die() {
    board_.dying.set(1);
    leave();
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }

  // ---- one at a time
  void await_turn() {
    for (std::uint32_t turn = board_.turn.get(); turn != me_; turn = board_.turn.get())
      board_.turn.wait_while(turn);
  }
  void give_turn() {
    const std::uint32_t others = board_.running.get() & ~(1U << me_);
    if (others == 0) return;
    board_.turn.set(pick(others));
    await_turn();
  }
  void leave() {
    const std::uint32_t left = board_.running.clear(1U << me_);
    board_.pulse.add(1);
    if (!board_.plan.free_running && left != 0) board_.turn.set(pick(left));
  }
  std::uint32_t pick(std::uint32_t set) {
    for (;;)
      if (const auto one = static_cast<std::uint32_t>(dice_.below(kMostProcesses));
          (set >> one & 1) != 0)
        return one;
  }

  // ---- calls
  template <class Body>
  void call(Operation operation, Body body) {
    Board::Sheet& sheet = board_.sheet[me_];
    const std::uint32_t number = sheet.count.get();
    if (number == kMostCalls) throw std::logic_error("more calls than a sheet has room for");
    operation.process = static_cast<std::uint8_t>(me_);
    operation.line = hands_.home();
    operation.call = stamp();
    sheet.calls[number] = operation;
    sheet.count.set(number + 1);
    shm::thread_hook = on_access;
    body(operation);
    shm::thread_hook = nullptr;
    operation.returned = stamp();
    sheet.calls[number] = operation;
    board_.pulse.add(1);
  }

  bool i_mend() const { return board_.plan.crash && me_ == (board_.victim + 1) % board_.processes; }
  bool mend_if_needed() {
    if (!i_mend() || board_.dying.get() == 0 || board_.mended.get() != 0) return false;
    board_.mended.set(1);
    Operation operation{.kind = Kind::kMend, .previous = static_cast<std::uint8_t>(board_.victim)};
    call(operation, [this](Operation& o) {
      shm::thread_hook = nullptr;  // how long the kernel takes to bury it is not ours to repeat
      for (unsigned look = 0; !hands_.mend(); ++look) shm::wait_for_another(look);
      o.answer = Answer::kOk;
    });
    return true;
  }

  void call_something() {
    const bool everything = board_.plan.everything;
    const auto lot = dice_.below(100);
    if (held_ != 0 && (!everything || held_ > 1 || lot < 50)) {
      end_one(everything && dice_.chance(0.6) ? Kind::kRequeue : Kind::kAck);
      if (everything) return;
    }
    const std::uint32_t jobs = board_.jobs.get();
    if (everything && lot < 35 && jobs > 0) {
      const auto job = static_cast<std::uint8_t>(dice_.below(jobs));
      if (board_.known[job].yes.get() != 0) {
        const engine::JobId id = board_.known[job].id;
        if (lot < 12)
          return call({.kind = Kind::kCancel, .job = job},
                      [&](Operation& o) { hands_.cancel(o, id); });
        return call({.kind = Kind::kReprioritize, .job = job, .level = level()},
                    [&](Operation& o) { hands_.reprioritize(o, id); });
      }
    }
    if (dice_.chance(0.5) && jobs < kMostJobs - kMostProcesses) return enqueue();
    call({.kind = Kind::kFetch}, [this](Operation& o) {
      board_.took(o, hands_.fetch(o), round_);
      if (o.answer == Answer::kOk) holding_[held_++] = o.job;
    });
  }
  void end_one(Kind kind) {
    Operation operation{.kind = kind, .job = holding_[--held_]};
    if (!board_.plan.everything) return hands_.ack(operation);  // of no interest to who watches
    call(operation,
         [this](Operation& o) { o.kind == Kind::kAck ? hands_.ack(o) : hands_.requeue(o); });
  }
  void enqueue() {
    const auto job = static_cast<std::uint8_t>(board_.jobs.add(1));
    Board::Known& known = board_.known[job];
    std::optional<engine::JobId> id;
    const bool brings = board_.plan.everything && dice_.chance(0.5);
    if (brings) {  // then others can name it before it is there
      id = engine::JobId{0x0196'0000'0000'7000ULL | (round_ << 16 & 0x0000'FFFF'FFFF'0000ULL),
                         0x8000'0000'0000'0000ULL | round_ << 8 | job};
      known.id = *id;
      known.yes.set(1);
    }
    call({.kind = Kind::kEnqueue, .job = job, .level = level()},
         [&](Operation& o) { hands_.enqueue(o, round_ * kTagOfRound + job, id); });
    if (brings || !id) return;
    known.id = *id;
    known.yes.set(1);
  }
  std::uint8_t level() { return static_cast<std::uint8_t>(dice_.below(board_.plan.levels)); }

  static Player* player_;
  Board& board_;
  Hands& hands_;
  unsigned me_;
  std::uint32_t round_;
  Dice dice_;
  std::uint64_t doomed_, until_delay_ = 1, accesses_ = 0;
  std::array<std::uint8_t, 4> holding_{};
  unsigned held_ = 0;
};

Recorder::Player* Recorder::Player::player_ = nullptr;

Recorder::Recorder(Subject& subject, unsigned processes)
    : subject_(subject), processes_(processes) {
  void* memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap");
  board_ = new (memory) Board;
  for (unsigned i = 0; i < processes_; ++i) start(i);
  own_ = subject_.attach();
}

Recorder::~Recorder() {
  for (const pid_t child : children_)
    if (child > 0) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  own_.reset();
  ::munmap(board_, sizeof(Board));
}

void Recorder::start(unsigned process) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child > 0) {
    children_[process] = child;
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  try {
    const std::unique_ptr<Hands> hands = subject_.attach();
    for (std::uint32_t round = round_;;) {
      while (board_->round.get() == round) board_->round.wait_while(round);
      round = board_->round.get();
      Player(*board_, *hands, process, round).play();
    }
  } catch (const std::exception& error) {
    std::cerr << "process " << process << ": " << error.what() << '\n';
  }
  ::_exit(3);
}

/// Until every process has done its calls. A victim is buried; another's death is a failure of
/// its own.
void Recorder::await_end() {
  const auto end = std::chrono::steady_clock::now() + kBound;
  for (std::uint32_t left = board_->running.get(); left != 0; left = board_->running.get()) {
    board_->running.wait_while(left);
    if (board_->running.get() != left) continue;
    for (unsigned process = 0; process < processes_; ++process) {
      if (board_->dying.get() != 0 && process == board_->victim) continue;
      if (::waitpid(children_[process], nullptr, WNOHANG) == 0) continue;
      children_[process] = 0;
      throw std::runtime_error("a process died that nobody killed");
    }
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error("a process does not come to an end");
  }
}

/// Fetches what is left, as one more process, the last one of these fetches being empty.
void Recorder::drain(History& history) {
  for (Answer answer = Answer::kOk; answer == Answer::kOk;) {
    Operation operation{.kind = Kind::kFetch,
                        .process = static_cast<std::uint8_t>(processes_),
                        .line = own_->home(),
                        .call = stamp()};
    const Hands::Fetched fetched = own_->fetch(operation);
    operation.returned = stamp();
    answer = operation.answer;
    board_->took(operation, fetched, round_);
    history.operations.push_back(operation);
    if (history.operations.size() > 2 * kMostCalls * kMostProcesses)
      throw std::runtime_error("fetches never end");
    Operation ended = operation;
    if (answer == Answer::kOk) own_->ack(ended);
  }
}

/// As one more process, before the others begin.
void Recorder::bring_elders(History& history) {
  Dice dice(board_->plan.seed ^ 0xE1DE'75ULL);
  for (std::uint32_t job = 0; job < board_->plan.elders; ++job) {
    Operation operation{.kind = Kind::kEnqueue,
                        .process = static_cast<std::uint8_t>(processes_),
                        .job = static_cast<std::uint8_t>(job),
                        .level = static_cast<std::uint8_t>(dice.below(board_->plan.levels)),
                        .line = own_->home(),
                        .call = stamp()};
    std::optional<engine::JobId> id;
    own_->enqueue(operation, (round_ + 1) * kTagOfRound + job, id);
    operation.returned = stamp();
    history.operations.push_back(operation);
    board_->known[job].id = id.value_or(engine::JobId{});
    board_->known[job].yes.set(id ? 1 : 0);
    own_->grow_older();
  }
  board_->jobs.set(board_->plan.elders);
}

History Recorder::record(const Plan& plan) {
  board_->plan = plan;
  board_->processes = processes_;
  board_->running.set((1U << processes_) - 1);
  board_->jobs.set(0);
  board_->dying.set(0);
  board_->mended.set(0);
  board_->strange_tag = 0;
  for (Board::Known& known : board_->known) {
    known.yes.set(0);
    known.since = 0;
  }
  for (Board::Sheet& sheet : board_->sheet) sheet.count.set(0);
  Dice dice(plan.seed);
  board_->victim = static_cast<std::uint32_t>(dice.below(processes_));
  board_->doomed_writes = static_cast<std::uint32_t>(dice.any_magnitude(1, 80));
  board_->turn.set(static_cast<std::uint32_t>(dice.below(processes_)));
  History history;
  bring_elders(history);
  history.rules = own_->rules();
  board_->round.set(++round_);
  await_end();
  if (board_->dying.get() != 0) {
    const std::uint32_t victim = board_->victim;
    ::waitpid(children_[victim], nullptr, 0);
    ++kills_;
    start(victim);
  }
  for (unsigned process = 0; process < processes_; ++process) {
    const Board::Sheet& sheet = board_->sheet[process];
    history.operations.insert(history.operations.end(), sheet.calls,
                              sheet.calls + sheet.count.get());
  }
  drain(history);
  for (std::uint32_t job = 0; job < board_->jobs.get(); ++job) {
    const Board::Known& known = board_->known[job];
    history.since[job] =
        known.since != 0 || known.yes.get() == 0 ? known.since : own_->since(known.id);
  }
  if (const std::uint64_t tag = board_->strange_tag; tag != 0)
    strange_ = "history " + std::to_string(round_) + " fetched job " +
               std::to_string((tag - 1) % kTagOfRound) + " of history " +
               std::to_string((tag - 1) / kTagOfRound);
  return history;
}

}  // namespace ojs_shm::test
