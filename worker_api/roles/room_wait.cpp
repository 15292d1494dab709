// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/room_wait.hpp"

#include <algorithm>

#include "shm/parking.hpp"

namespace ojs_shm::internal {

using engine::Outcome;

namespace {
constexpr std::uint64_t kSoonMs = 1, kLookMs = 100;  ///< see engine/bounds/waiting_line.cpp
constexpr std::chrono::milliseconds kLongestWait = std::chrono::hours(1);
}  // namespace

Status check_block_timeout(std::chrono::milliseconds timeout) {
  if (timeout.count() >= 0 && timeout <= kLongestWait) return {};
  return Error{Code::kInvalid,
               "block_timeout is 0 to " + std::to_string(kLongestWait.count() / 1000) + " seconds"}
      .about("block_timeout")
      .at_most(static_cast<std::uint64_t>(kLongestWait.count()), "ms");
}

RoomWait::RoomWait(Handle& handle, std::span<const engine::NewJob> jobs,
                   std::chrono::milliseconds timeout)
    : handle_(handle),
      jobs_(jobs),
      until_ms_(shm::steady_ms() + static_cast<std::uint64_t>(timeout.count())),
      queue_(jobs.front().queue) {}

void RoomWait::leave() {
  if (place_.held() && !handle_.closed()) handle_.actor().leave_room(queue_, place_);
  place_ = {};
}

Outcome RoomWait::attempt(std::vector<engine::JobId>& ids) {
  if (jobs_.size() > 1) return handle_.actor().enqueue_batch(jobs_, ids);
  ids.resize(1);
  return handle_.actor().enqueue(jobs_.front(), ids.front());
}

Outcome RoomWait::look(std::vector<engine::JobId>& ids) {
  engine::Actor& actor = handle_.actor();
  for (;;) {
    const bool in_time = shm::steady_ms() < until_ms_;
    if (!in_time) leave();  // a last attempt among the enqueues that do not wait
    if (place_.held()) actor.attend(place_.ticket);
    actor.be_patient(in_time, place_.ticket);
    Outcome outcome = attempt(ids);
    actor.be_patient(false);
    // it keeps its place until it has looked them up again
    if (outcome == Outcome::kLimitsMoved) return outcome;
    if (outcome != Outcome::kMustWait) {
      leave();
      return outcome;
    }
    const std::uint32_t full = jobs_.size() > 1 ? actor.refusing() : queue_;
    if (full != queue_) leave();  // there is room where it waited, and none here
    queue_ = full;
    if (place_.held()) return outcome;
    outcome = actor.await_room(queue_, until_ms_, place_);
    if (outcome != Outcome::kOk) return outcome;  // else look again: there may be room by now
  }
}

/// After the first look, and after each for which it was called, it rests: it comes back by itself
/// within a millisecond, and is hardly called before. It sleeps longer only after a look that began
/// when its rest was over.
Outcome RoomWait::wait(std::vector<engine::JobId>& ids) {
  const shm::Half& park = handle_.store().segment().lane(handle_.lane()).park;
  std::uint64_t rest_until = 0;
  for (bool called = true;;) {
    const std::uint32_t before = park.load();
    const bool rests = called || shm::steady_ms() < rest_until;
    const Outcome outcome = look(ids);
    if (outcome != Outcome::kMustWait) return outcome;
    const std::uint64_t now = shm::steady_ms();
    if (rests) {
      rest_until = now + kSoonMs;
      handle_.actor().rest_in_line(place_.ticket, rest_until);
    }
    if (now < until_ms_)
      shm::futex_wait(park, before, std::min(until_ms_ - now, rests ? kSoonMs : kLookMs));
    called = park.load() != before;
    if (!rests && !called) handle_.attachment().repair_the_dead();
  }
}

}  // namespace ojs_shm::internal
