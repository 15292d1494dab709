// SPDX-License-Identifier: Apache-2.0
#include "tests/linearizability/search.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_set>

namespace ojs_shm::test {
namespace {

using engine::JobState;

enum class Where : std::uint8_t { kNowhere, kLine, kHeld, kCompleted, kCancelled, kPlace };

/// A queue that does one thing at a time. `line` holds the waiting jobs, the next to be fetched
/// first, and the places that are kept for those on their way to another level.
struct Queue {
  /// jobs, then a place for each process
  static constexpr std::size_t kMost = kMostSearchedJobs + kMostProcesses;
  struct Job {
    Where where = Where::kNowhere;
    std::uint8_t level = 0, front = 0, holder = 0, line = 0;
  };
  std::array<Job, kMost> jobs{};
  std::array<std::uint8_t, kMost> line{};
  std::uint8_t waiting = 0;
  /// a bit for each dead process whose repair has begun
  std::uint8_t mended = 0;
  std::uint8_t next = 0;  ///< of the cycle, where levels take turns
  /// whose turn a process has taken, plus one, and no job yet
  std::array<std::uint8_t, kMostProcesses> turn{};

  static JobState state_of(const Job& job) {
    switch (job.where) {
      case Where::kLine: return JobState::kAvailable;
      case Where::kHeld: return JobState::kActive;
      case Where::kCompleted: return JobState::kCompleted;
      default: return JobState::kCancelled;
    }
  }
  /// Behind all that go before it: better levels, front lanes, in these those available earlier,
  /// and equals.
  void put(std::uint8_t number, std::uint8_t level, bool front, const History& history) {
    Job& job = jobs[number];
    job = {number < kMostSearchedJobs ? Where::kLine : Where::kPlace, level, front, 0, job.line};
    auto rank = [&](std::uint8_t other) {
      const Job& o = jobs[other];
      return std::tuple(o.level, o.front == 0, o.front != 0 ? history.since[other] : 0);
    };
    auto end = line.begin() + waiting;
    auto place = std::upper_bound(line.begin(), end, number,
                                  [&](auto a, auto b) { return rank(a) < rank(b); });
    std::copy_backward(place, end, end + 1);
    *place = number;
    ++waiting;
  }
  void leave_line(std::uint8_t number) {
    auto end = line.begin() + waiting;
    auto place = std::find(line.begin(), end, number);
    std::copy(place + 1, end, place);
    line[--waiting] = 0;
  }
  void end(std::uint8_t number, Where where) {
    if (jobs[number].where == Where::kLine) leave_line(number);
    jobs[number] = {where, 0, 0, 0};
  }
  static std::uint8_t place_of(std::uint8_t process) {
    return static_cast<std::uint8_t>(kMostSearchedJobs + process);
  }
  bool keeps_place(std::uint8_t process) const {
    return jobs[place_of(process)].where == Where::kPlace;
  }
  /// From where it stands to the place that was kept.
  void go_to_place(std::uint8_t number, std::uint8_t process) {
    leave_line(number);
    *std::find(line.begin(), line.begin() + waiting, place_of(process)) = number;
    jobs[number] = {Where::kLine, jobs[place_of(process)].level, 0, 0};
    jobs[place_of(process)] = {};
  }
  static constexpr std::uint8_t kNobody = 255;
  std::uint8_t first_of(std::uint8_t level) const {
    const auto end = line.begin() + waiting;
    const auto found = std::find_if(line.begin(), end, [&](std::uint8_t job) {
      return jobs[job].level == level && jobs[job].where == Where::kLine;
    });
    return found == end ? kNobody : *found;
  }
  /// Whose turn it is in no cycle: the heads of all lanes are compared, where age counts. Of
  /// several lines the first that has a job, from `home` on.
  std::uint8_t best(const History& history, std::uint8_t home) const {
    const Rules& rules = history.rules;
    const auto standing = [&](std::uint8_t number) {
      const Job& job = jobs[number];
      const std::uint64_t since = history.since[number];
      const std::uint64_t age = rules.now_ms > since ? rules.now_ms - since : 0;
      return std::tuple(job.level - static_cast<std::int64_t>(age / rules.interval_ms), since,
                        job.level, job.front == 0);
    };
    const auto lines_from_home = [&](std::uint8_t number) {
      return (jobs[number].line + rules.lines - home) % rules.lines;
    };
    std::uint8_t best = kNobody, before = kNobody;
    for (std::uint8_t at = 0; at < waiting; ++at) {
      const std::uint8_t number = line[at];
      if (jobs[number].where != Where::kLine) continue;
      if (rules.lines > 1) {
        if (best == kNobody || lines_from_home(number) < lines_from_home(best)) best = number;
        continue;
      }
      const bool leads = before == kNobody || jobs[number].level != jobs[before].level ||
                         jobs[number].front != jobs[before].front;
      before = number;
      if (best == kNobody) best = number;
      if (rules.interval_ms == 0) break;
      if (leads && standing(number) < standing(best)) best = number;
    }
    return best;
  }
  void hold(std::uint8_t number, std::uint8_t process) {
    leave_line(number);
    jobs[number].where = Where::kHeld;
    jobs[number].holder = process;
    jobs[number].front = 0;
  }
};

class Search {
 public:
  Search(const History& history, const Strictness& strictness)
      : history_(history), strict_(strictness), calls_(history.operations) {
    std::stable_sort(calls_.begin(), calls_.end(),
                     [](const auto& a, const auto& b) { return a.call < b.call; });
    // One repair gives back job by job: a process holds two at most, and its last call may have
    // taken a third.
    std::vector<Operation> mends;
    for (const Operation& o : calls_)
      if (o.kind == Kind::kMend) mends.insert(mends.end(), 2, o);
    calls_.insert(calls_.end(), mends.begin(), mends.end());
    // what its repairer finishes happens before that one returns; a move needs no repairer
    for (Operation& o : calls_)
      if (o.answer == Answer::kPending && o.kind != Kind::kReprioritize)
        for (const Operation& mend : mends)
          if (mend.previous == o.process) o.returned = mend.returned;
  }

  Verdict run() {
    if (calls_.size() > kMostSearchedOperations) return Verdict::kTooLarge;
    for (const Operation& o : calls_)
      if (o.job != kNoJob && o.job >= kMostSearchedJobs) return Verdict::kTooLarge;
    return step(0, 0, Queue{}) ? Verdict::kRight : Verdict::kWrong;
  }

 private:
  bool step(std::uint64_t done, std::uint64_t latest_call, const Queue& queue) {
    std::uint64_t first_return = kNever;
    bool complete = true;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if ((done >> i & 1) != 0 || calls_[i].answer == Answer::kPending) continue;
      complete = false;
      first_return = std::min(first_return, calls_[i].returned);
    }
    if (complete) return true;
    std::string key(reinterpret_cast<const char*>(&queue), sizeof queue);
    key.append(reinterpret_cast<const char*>(&done), sizeof done);
    if (!seen_.insert(std::move(key)).second) return false;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const Operation& o = calls_[i];
      if ((done >> i & 1) != 0 || o.call > first_return) continue;
      if (o.answer == Answer::kPending && o.returned < latest_call) continue;  // too late for it
      next_.clear();
      begun_.clear();
      apply(o, queue);
      const std::vector<Queue> next = next_, begun = begun_;
      for (const Queue& after : next)
        if (step(done | 1ULL << i, std::max(latest_call, o.call), after)) return true;
      for (const Queue& after : begun)
        if (step(done, std::max(latest_call, o.call), after)) return true;
    }
    return false;
  }

  void apply(const Operation& o, const Queue& before) {
    if (o.answer == Answer::kBusy || o.answer == Answer::kRefused) {
      next_.push_back(before);
      return;
    }
    Queue after = before;
    const bool killed = o.answer == Answer::kPending;
    auto accept = [&](bool fits) {
      if (fits) next_.push_back(after);
    };
    switch (o.kind) {
      case Kind::kEnqueue:
        if (before.jobs[o.job].where != Where::kNowhere) return;
        after.jobs[o.job].line = o.line;
        after.put(o.job, o.level, false, history_);
        return accept(true);
      case Kind::kFetch: {
        if (killed && (before.mended >> o.process & 1) != 0) return;
        std::uint8_t best = before.best(history_, o.line);
        if (!history_.rules.cycle.empty() && !take_turn(o.process, before, best)) return;
        if (best == Queue::kNobody) return accept(o.answer == Answer::kEmpty);
        after.turn[o.process] = 0;
        after.hold(best, o.process);
        return accept(killed || (o.answer == Answer::kOk && best == o.job &&
                                 before.jobs[best].level == o.level));
      }
      case Kind::kAck:
      case Kind::kRequeue: {
        const Queue::Job& job = before.jobs[o.job];
        if (job.where != Where::kHeld || job.holder != o.process)
          return accept(o.answer == Answer::kLost);
        if (o.kind == Kind::kAck)
          after.end(o.job, Where::kCompleted);
        else
          after.put(o.job, job.level, true, history_);
        return accept(o.answer == Answer::kOk || killed);
      }
      case Kind::kCancel: {
        const Queue::Job& job = before.jobs[o.job];
        if (job.where == Where::kNowhere) return accept(o.answer == Answer::kNotFound);
        if (job.where != Where::kLine && job.where != Where::kHeld)
          return accept(o.answer == Answer::kWrongState && Queue::state_of(job) == o.found);
        after.end(o.job, Where::kCancelled);
        accept(killed || (o.answer == Answer::kOk && Queue::state_of(job) == o.found));
        if (killed && job.where == Where::kLine && (before.mended >> o.process & 1) == 0) {
          after = before;  // cut off half-way: out of the line, until the repair puts it in front
          after.hold(o.job, o.process);
          accept(true);
        }
        return;
      }
      case Kind::kReprioritize: {
        const Queue::Job& job = before.jobs[o.job];
        const bool keeps_place = before.keeps_place(o.process);
        // then it took none yet
        if (keeps_place && (job.where != Where::kLine || job.level == o.level)) return;
        if (!strict_.details && o.answer == Answer::kOk && o.level == o.previous)
          return accept(true);
        if (job.where == Where::kNowhere) return accept(o.answer == Answer::kNotFound);
        if (job.where != Where::kLine)
          return accept(o.answer == Answer::kWrongState &&
                        (!strict_.details || Queue::state_of(job) == o.found));
        if (keeps_place) {
          after.go_to_place(o.job, o.process);
        } else if (job.level != o.level && !history_.rules.plain()) {
          after.put(Queue::place_of(o.process), o.level, false, history_);
          return begun_.push_back(after);
        } else if (job.level != o.level) {
          after.leave_line(o.job);
          after.put(o.job, o.level, false, history_);
        }
        return accept(killed ||
                      (o.answer == Answer::kOk && (!strict_.details || job.level == o.previous)));
      }
      case Kind::kMend: {
        after.mended = static_cast<std::uint8_t>(after.mended | 1U << o.previous);
        const Queue begun = after;
        for (std::uint8_t number = 0; number < kMostSearchedJobs; ++number) {
          const Queue::Job& job = before.jobs[number];
          if (job.where != Where::kHeld || job.holder != o.previous) continue;
          after = begun;
          after.put(number, job.level, true, history_);
          accept(true);
        }
        if (next_.empty()) next_.push_back(begun);
        return;
      }
    }
  }

  /// Where levels take turns, a fetch first takes one, by an instant of its own, and then the first
  /// job of that level. One that is gone by then gives its turn away. False: no more than that has
  /// happened yet.
  bool take_turn(std::uint8_t process, const Queue& before, std::uint8_t& best) {
    const std::vector<std::uint8_t>& cycle = history_.rules.cycle;
    Queue after = before;
    if (const std::uint8_t taken = before.turn[process]; taken != 0) {
      best = before.first_of(static_cast<std::uint8_t>(taken - 1));
      if (best != Queue::kNobody) return true;
      after.turn[process] = 0;
      begun_.push_back(after);
      return false;
    }
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const std::size_t at = (before.next + i) % cycle.size();
      if (before.first_of(cycle[at]) == Queue::kNobody) continue;
      after.next = static_cast<std::uint8_t>((at + 1) % cycle.size());
      after.turn[process] = static_cast<std::uint8_t>(cycle[at] + 1);
      begun_.push_back(after);
      return false;
    }
    return true;  // the better of those that have no turns, or no process
  }

  const History& history_;
  Strictness strict_;
  std::vector<Operation> calls_;
  std::vector<Queue> next_, begun_;  ///< after the call; within it
  std::unordered_set<std::string> seen_;
};

}  // namespace

Verdict search(const History& history, const Strictness& strictness) {
  return Search(history, strictness).run();
}

}  // namespace ojs_shm::test
