// SPDX-License-Identifier: Apache-2.0
// The one file that sees Relacy, which defines macros and replaces operator new. Relacy keeps for
// each word the history of its writes, who has seen which, and what happens before what; the values
// and the bytes of the segment are kept here, in the place where the engine looks for them.
#include "tests/relacy/memory.hpp"

#include <cstring>
#include <random>
#include <sstream>

#include "tests/relacy/cell.hpp"
#include "tests/schedules/fibers.hpp"

#include <relacy/relacy.hpp>
// Its macros are for tests written in its own notation.
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst

namespace ojs_shm::test {
namespace {

constexpr std::size_t kNoWord = 0;
constexpr unsigned kMostAccesses = 100'000;  ///< of one run; more are taken for a livelock

/// A word that a lane touched in this run.
struct Touched {
  std::size_t unit;
  rl::atomic_data* relacy;
  std::uint64_t history[rl::atomic_history_size];
};

/// The run that is being played; one at a time, in one thread.
struct Run {
  const Play* play = nullptr;
  rl::atomic_data* (*make_atomic)(std::uint64_t& newest) = nullptr;
  bool active = false;            ///< threads are running
  std::vector<std::uint32_t> at;  ///< by unit of two bytes: place in `touched` + 1
  std::vector<Touched> touched;
  bool allocates = false;  ///< Relacy leaves allocations alone
  shm::Point point = shm::Point::kNone;
  Played result;
};
Run run;

/// For the text of a failure.
struct AccessEvent {
  std::string text;
  void output(std::ostream& out) const { out << text; }
};

std::uint64_t bytes_of(const void* word, std::size_t size) {
  std::uint64_t value = 0;
  std::memcpy(&value, word, size);
  return value;
}

bool modelled(const void* word) {
  const auto* byte = static_cast<const char*>(word);
  const auto* begin = static_cast<const char*>(run.active ? run.play->begin : nullptr);
  return run.active && byte >= begin && byte < begin + run.play->size;
}

Touched& known(const void* word, std::size_t size) {
  const auto unit = static_cast<std::size_t>(static_cast<const char*>(word) -
                                             static_cast<char*>(run.play->begin)) /
                    2;
  if (run.at[unit] == kNoWord) {
    std::uint64_t newest = 0;
    Touched fresh{unit, run.make_atomic(newest), {}};
    fresh.history[newest] = bytes_of(word, size);
    run.touched.push_back(fresh);
    run.at[unit] = static_cast<std::uint32_t>(run.touched.size());
  }
  return run.touched[run.at[unit] - 1];
}

/// Before each access another thread may go on.
std::memory_order begin_access(MemoryAccess::Kind kind, const void* word, std::memory_order order) {
  const shm::Point point = run.point;
  run.point = shm::Point::kNone;
  ++run.result.accesses;
  rl::ctx().sched();
  return run.play->weaken ? run.play->weaken({kind, word, point, order}) : order;
}

void note(const char* what, const void* word, std::uint64_t before, std::uint64_t after,
          std::memory_order order, bool old) {
  rl::context& context = rl::ctx();
  if (!context.collecting_history()) return;
  constexpr const char* kOrders[] = {"relaxed", "consume", "acquire",
                                     "release", "acq_rel", "seq_cst"};
  std::ostringstream text;
  text << what << ' ' << (run.play->name_of ? run.play->name_of(word) : "") << std::hex << ' '
       << before;
  if (before != after) text << " -> " << after;
  text << ' ' << kOrders[static_cast<int>(order)] << (old ? " NOT THE NEWEST" : "");
  context.exec_log(rl::debug_info(), AccessEvent{text.str()});
}

unsigned load_index(rl::atomic_data* data, std::memory_order order, bool newest = false) {
  rl::thread_info_base& self = *rl::ctx().threadx_;
  switch (order) {
    case std::memory_order_release:  // of a cas that fails
    case std::memory_order_relaxed:
      return newest ? self.atomic_load_relaxed_rmw(data) : self.atomic_load_relaxed(data);
    case std::memory_order_acq_rel:
    case std::memory_order_acquire:
      return newest ? self.atomic_load_acquire_rmw(data) : self.atomic_load_acquire(data);
    default: return newest ? self.atomic_load_seq_cst_rmw(data) : self.atomic_load_seq_cst(data);
  }
}

unsigned store_index(rl::atomic_data* data, std::memory_order order) {
  rl::thread_info_base& self = *rl::ctx().threadx_;
  switch (order) {
    case std::memory_order_relaxed: return self.atomic_store_relaxed(data);
    case std::memory_order_acq_rel:  // of a mutant that weakens all writes of a point
    case std::memory_order_release: return self.atomic_store_release(data);
    default: return self.atomic_store_seq_cst(data);
  }
}

unsigned update_index(rl::atomic_data* data, std::memory_order order) {
  rl::thread_info_base& self = *rl::ctx().threadx_;
  bool aba = false;
  switch (order) {
    case std::memory_order_relaxed: return self.atomic_rmw_relaxed(data, aba);
    case std::memory_order_acquire: return self.atomic_rmw_acquire(data, aba);
    case std::memory_order_release: return self.atomic_rmw_release(data, aba);
    case std::memory_order_acq_rel: return self.atomic_rmw_acq_rel(data, aba);
    default: return self.atomic_rmw_seq_cst(data, aba);
  }
}

void write(Touched& touched, unsigned index, void* word, std::size_t size, std::uint64_t value) {
  touched.history[index] = value;
  std::memcpy(word, &value, size);  // the bytes always hold the newest value
}

std::uint64_t updated(shm::Update update, std::uint64_t before, std::uint64_t operand) {
  switch (update) {
    case shm::Update::kAdd: return before + operand;
    case shm::Update::kOr: return before | operand;
    case shm::Update::kAnd: return before & operand;
    case shm::Update::kExchange: return operand;
  }
  return before;
}

/// Relacy frees only what was allocated while it ran a test; all of this goes to malloc and free.
struct Allocation : rl::context {
  static void leave_to_the_system() { rl::ctx().*& Allocation::disable_alloc_ += 1; }
};

void end_threads() {
  run.active = false;
  shm::thread_hook = nullptr;
  for (const Touched& touched : run.touched) run.at[touched.unit] = kNoWord;
}

/// Relacy's random scheduler, with a better generator, and with two things that differ from run to
/// run: how long a thread stays, and how willingly a load returns an old value. Each access
/// switching with the same odds would never let one thread do a whole operation between two
/// accesses of another.
template <int kThreads>
class Schedule : public rl::scheduler<Schedule<kThreads>, rl::scheduler_thread_info, kThreads> {
 public:
  using Base = rl::scheduler<Schedule<kThreads>, rl::scheduler_thread_info, kThreads>;
  using typename Base::shared_context_t, typename Base::thread_info_t;
  struct task_t {};
  Schedule(rl::test_params& params, shared_context_t& context, rl::thread_id_t dynamic)
      : Base(params, context, dynamic) {}

  rl::thread_id_t iteration_begin_impl() {
    constexpr unsigned kStays[] = {1, 2, 8, 32, 128}, kNewest[] = {2, 4, 16};
    dice_.seed(this->iter_ * 0x9E37'79B9'7F4A'7C15ULL);
    stays_ = kStays[dice_() % 5];
    newest_ = kNewest[dice_() % 3];
    return static_cast<rl::thread_id_t>(dice_() % kThreads);
  }
  bool iteration_end_impl() { return this->iter_ == this->params_.iteration_count; }
  rl::thread_id_t schedule_impl(rl::unpark_reason& reason, unsigned) {
    reason = rl::unpark_reason_normal;
    if (this->thread_->state_ == rl::thread_state_running && dice_() % stays_ != 0)
      return this->thread_->index_;
    return this->running_threads[dice_() % static_cast<unsigned>(this->running_threads_count)];
  }
  unsigned rand_impl(unsigned limit, rl::sched_type type) {
    // 1: an older one
    if (type == rl::sched_type_atomic_load) return dice_() % newest_ == 0 ? 1 : 0;
    return static_cast<unsigned>(dice_() % limit);
  }
  rl::iteration_t iteration_count_impl() { return this->params_.iteration_count; }
  void get_state_impl(std::ostream&) {}
  void set_state_impl(std::istream&) {}
  void on_thread_block(rl::thread_id_t, bool) {}
  void thread_finished_impl() {}

 private:
  std::mt19937_64 dice_;
  unsigned stays_ = 1, newest_ = 2;
};

template <int kThreads>
struct Suite : rl::test_suite<Suite<kThreads>, kThreads> {
  /// A word as it was before any thread began: everybody has seen it.
  static rl::atomic_data* settled_word(std::uint64_t& newest) {
    rl::atomic_data* data = rl::ctx().atomic_ctor(nullptr);
    auto& word = *static_cast<rl::atomic_data_impl<kThreads>*>(data);
    for (auto& record : word.history_) {
      record.busy_ = record.seq_cst_ = false;
      record.thread_id_ = 0;
      record.acq_rel_timestamp_ = 0;
      for (int i = 0; i < kThreads; ++i) {
        record.acq_rel_order_[i] = 0;
        record.first_seen_order_[i] = static_cast<rl::timestamp_t>(-1);
      }
    }
    word.current_index_ = 0;
    word.history_[0].busy_ = true;
    newest = 0;
    return data;
  }
  void before() {
    if (!run.allocates) Allocation::leave_to_the_system();
    run.allocates = true;
    run.play->prepare();
    run.make_atomic = settled_word;
    run.active = true;
    shm::thread_hook = [](shm::Access, shm::Point point, const void*) { run.point = point; };
  }
  void thread(unsigned index) { run.play->threads[index](); }
  void after() {
    end_threads();
    for (const Touched& touched : run.touched) rl::ctx().atomic_dtor(touched.relacy);
    run.touched.clear();
    run.result.failure = run.play->verdict();
    if (!run.result.failure.empty())
      rl::ctx().fail_test(run.result.failure.c_str(), rl::test_result_user_assert_failed,
                          rl::debug_info());
  }
};

/// Relacy's search of every schedule within a bound, which may end before it is through.
template <int kThreads>
struct EverySchedule : rl::context_bound_scheduler<kThreads> {
  using rl::context_bound_scheduler<kThreads>::context_bound_scheduler;
  bool iteration_end() {
    run.result.complete = rl::context_bound_scheduler<kThreads>::iteration_end();
    return run.result.complete || this->iter_ >= this->params_.iteration_count;
  }
};

/// Plays until Relacy ends it. `state` leads to where it begins, and afterwards to the run that
/// failed.
template <class Test, class Scheduler>
void search(rl::scheduler_type_e type, unsigned preemptions, std::uint64_t runs, std::string& state,
            bool history, std::ostream& text) {
  std::ostringstream after, nowhere;
  rl::test_params params;
  params.output_stream = &text;
  params.progress_stream = &nowhere;
  params.collect_history = history;
  params.search_type = type;
  params.context_bound = preemptions;
  params.execution_depth_limit = kMostAccesses;
  params.initial_state = state.c_str();
  params.iteration_count = runs;
  run.allocates = false;
  rl::run_test<Test, Scheduler>(params, after, history);
  end_threads();  // also of a run that was cut off
  run.touched.clear();
  run.result.last = params.stop_iteration;
  if (params.test_result != rl::test_result_success && run.result.failure.empty())
    run.result.failure = rl::test_result_str(params.test_result);
  state = after.str();
}

template <int kThreads>
void search(const Play& play, std::uint64_t runs, std::string& state, bool history,
            std::ostream& text) {
  using Test = Suite<kThreads>;
  if (play.preemptions)
    search<Test, EverySchedule<kThreads>>(rl::fair_context_bound_scheduler_type, *play.preemptions,
                                          runs, state, history, text);
  else
    search<Test, Schedule<kThreads>>(rl::random_scheduler_type, 0, runs, state, history, text);
}

}  // namespace

Played play(const Play& play, std::uint64_t first, std::uint64_t runs) {
  run = Run{};
  run.play = &play;
  run.at.assign(play.size / 2, kNoWord);
  const auto search_it = play.threads.size() == 2 ? search<2> : search<3>;
  std::string state = play.preemptions ? "" : std::to_string(first);
  std::ostringstream text;
  search_it(play, first + runs - 1, state, false, text);
  Played played = run.result;
  if (played.failure.empty()) return played;
  search_it(play, played.last, state, true, text);  // once more, for the history
  played.history = text.str();
  return played;
}

}  // namespace ojs_shm::test

namespace ojs_shm::shm {

using namespace ojs_shm::test;  // NOLINT: the other half of the door

std::uint64_t model_load(const void* word, std::size_t size, std::memory_order order) {
  if (!modelled(word)) return bytes_of(word, size);
  order = begin_access(MemoryAccess::Kind::kLoad, word, order);
  Touched& touched = known(word, size);
  const std::uint64_t value = touched.history[load_index(touched.relacy, order)];
  const std::uint64_t newest = bytes_of(word, size);
  run.result.old_values += value != newest ? 1 : 0;
  note("load", word, value, value, order, value != newest);
  return value;
}

void model_store(void* word, std::size_t size, std::uint64_t value, std::memory_order order) {
  if (!modelled(word)) {
    std::memcpy(word, &value, size);
    return;
  }
  order = begin_access(MemoryAccess::Kind::kStore, word, order);
  Touched& touched = known(word, size);
  note("store", word, bytes_of(word, size), value, order, false);
  write(touched, store_index(touched.relacy, order), word, size, value);
}

std::uint64_t model_update(void* word, std::size_t size, Update update, std::uint64_t operand,
                           std::memory_order order) {
  const std::uint64_t mask = size == 8 ? ~0ULL : (1ULL << size * 8) - 1;
  if (!modelled(word)) {
    const std::uint64_t before = bytes_of(word, size),
                        after = updated(update, before, operand) & mask;
    std::memcpy(word, &after, size);
    return before;
  }
  order = begin_access(MemoryAccess::Kind::kUpdate, word, order);
  Touched& touched = known(word, size);
  const std::uint64_t before = bytes_of(word, size),
                      after = updated(update, before, operand) & mask;
  note("update", word, before, after, order, false);
  write(touched, update_index(touched.relacy, order), word, size, after);
  return before;
}

bool model_cas(void* word, std::size_t size, std::uint64_t& expected, std::uint64_t desired,
               std::memory_order order) {
  std::uint64_t found = bytes_of(word, size);
  if (!modelled(word)) {
    if (found == expected) std::memcpy(word, &desired, size);
  } else {
    order = begin_access(MemoryAccess::Kind::kUpdate, word, order);
    Touched& touched = known(word, size);
    // One that succeeds follows the newest value; one that fails is but a load.
    const std::uint64_t newest = found;
    found = touched.history[load_index(touched.relacy, order)];
    if (found == expected && found != newest)
      found = touched.history[load_index(touched.relacy, order, true)];
    const bool done = found == expected;
    note(done ? "cas" : "failed cas", word, found, done ? desired : found, order, found != newest);
    if (done) write(touched, update_index(touched.relacy, order), word, size, desired);
  }
  const bool done = found == expected;
  expected = found;
  return done;
}

}  // namespace ojs_shm::shm

// The clock of tests/schedules/world.cpp: each reading is later than the last. What it says holds
// in the order in which Relacy makes the accesses, and World knows how little that means here.
std::uint64_t ojs_shm::test::Fibers::now() { return ++ojs_shm::test::run.result.accesses; }
