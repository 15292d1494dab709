// SPDX-License-Identifier: Apache-2.0
#include "tests/schedules/fibers.hpp"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace ojs_shm::test {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;
/// Accesses in a row, after which a fiber is taken to wait for another; a repair has some thousand.
constexpr std::uint32_t kPatience = 10'000;
constexpr std::uint32_t kMostWaits = 60;

Fibers* running = nullptr;  ///< one thread, one run at a time
std::uint64_t clock_of_run = 0;

/// They outlive their fibers: new ones for each run would cost more than the run.
std::vector<std::unique_ptr<char[]>> free_stacks;

}  // namespace

struct Fibers::Fiber {
  std::function<void()> part;
  ucontext_t context{};
  std::unique_ptr<char[]> stack;
  bool done = false, killed = false;
  shm::Point last_point = shm::Point::kNone;  ///< of its last write
};

struct Fibers::Home {
  ucontext_t context{};
};

Fibers::Fibers(std::vector<std::function<void()>> parts) : home_(std::make_unique<Home>()) {
  for (auto& part : parts) {
    fibers_.push_back(std::make_unique<Fiber>());
    fibers_.back()->part = std::move(part);
    if (free_stacks.empty())
      free_stacks.push_back(std::make_unique_for_overwrite<char[]>(kStackBytes));
    fibers_.back()->stack = std::move(free_stacks.back());
    free_stacks.pop_back();
  }
}

Fibers::~Fibers() {
  for (const auto& fiber : fibers_) free_stacks.push_back(std::move(fiber->stack));
}

std::uint64_t Fibers::now() { return ++clock_of_run; }
bool Fibers::killed(std::uint32_t fiber) const { return fibers_[fiber]->killed; }

void Fibers::begin() {
  Fibers& self = *running;
  self.fibers_[self.current_]->part();
  self.fibers_[self.current_]->done = true;
  self.leave();
}

bool Fibers::run(std::uint32_t first, const std::vector<Switch>& switches) {
  running = this;
  switches_ = &switches;
  for (const auto& fiber : fibers_) {
    ::getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack.get();
    fiber->context.uc_stack.ss_size = kStackBytes;
    fiber->context.uc_link = nullptr;
    ::makecontext(&fiber->context, begin, 0);
  }
  current_ = first;
  shm::thread_hook = on_access;
  ::swapcontext(&home_->context, &fibers_[first]->context);
  shm::thread_hook = nullptr;
  running = nullptr;
  return !stuck_;
}

std::uint64_t& Fibers::deaths_at(shm::Point point) {
  static std::array<std::uint64_t, static_cast<std::size_t>(shm::Point::kCount)> counts{};
  return counts[static_cast<std::size_t>(point)];
}

void Fibers::on_access(shm::Access access, shm::Point point, const void* word) {
  if (access == shm::Access::kWritten) running->fibers_[running->current_]->last_point = point;
  if (access != shm::Access::kWritten) running->before_access(word, access != shm::Access::kLoad);
}

const Switch* Fibers::next_switch(bool ended) {
  if (next_switch_ == switches_->size()) return nullptr;
  const Switch& next = (*switches_)[next_switch_];
  if (next.access != steps_.size() + 1 || (next.why == Switch::Why::kEnded) != ended)
    return nullptr;
  ++next_switch_;
  return &next;
}

void Fibers::before_access(const void* word, bool writes) {
  bool told = false;
  while (const Switch* change = next_switch(false)) {
    told = true;
    if (change->why == Switch::Why::kKilled) {
      fibers_[current_]->killed = fibers_[current_]->done = true;
      ++deaths_at(fibers_[current_]->last_point);
      if (fibers_[change->to]->done) leave();
    }
    if (!fibers_[change->to]->done) go_to(change->to);
  }
  if (!told && ++in_a_row_ > kPatience) pass_on();
  ++clock_of_run;
  steps_.push_back({current_, word, writes});
}

/// The present fiber seems to wait for another one.
void Fibers::pass_on() {
  in_a_row_ = 0;
  if (++waits_ > kMostWaits) {
    stuck_ = true;
    ::setcontext(&home_->context);
  }
  for (std::uint32_t i = 1; i < fibers_.size(); ++i)
    if (const auto other = static_cast<std::uint32_t>((current_ + i) % fibers_.size());
        !fibers_[other]->done)
      return go_to(other);
}

void Fibers::go_to(std::uint32_t fiber) {
  const std::uint32_t from = current_;
  in_a_row_ = 0;
  if (fiber == from) return;
  current_ = fiber;
  ::swapcontext(&fibers_[from]->context, &fibers_[fiber]->context);
}

void Fibers::leave() {
  const auto rest = [](const auto& fiber) { return !fiber->done; };
  auto next = std::find_if(fibers_.begin(), fibers_.end(), rest);
  if (const Switch* told = next_switch(true); told != nullptr && rest(fibers_[told->to]))
    next = fibers_.begin() + told->to;
  if (next != fibers_.end()) {
    current_ = static_cast<std::uint32_t>(next - fibers_.begin());
    in_a_row_ = 0;
    ::setcontext(&(*next)->context);
  }
  ::setcontext(&home_->context);
  throw std::logic_error("a context did not take over");
}

}  // namespace ojs_shm::test
