// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: unique jobs, all of one key.
#include <algorithm>

#include "engine/unique/unique.hpp"
#include "tests/schedules/fibers.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

using engine::OnConflict;
using engine::Outcome;

namespace {

engine::NewAnnex annex_for(OnConflict conflict) {
  engine::NewAnnex annex;
  annex.bits = engine::kUnique;
  annex.key_hi = 0x5EED'0000'0000'0001, annex.key_lo = 0x5EED'0000'0000'0002;
  annex.uniqueness = engine::Uniqueness::make(engine::Uniqueness::kLive, conflict, false, 0).word;
  return annex;
}

}  // namespace

/// Of several that replace each other each ends those that were there when it was called.
void World::put_unique(std::uint32_t self, unsigned job, std::uint8_t rank, OnConflict conflict) {
  engine::NewJob spec = job_named(job, rank);
  const engine::NewAnnex annex = annex_for(conflict);
  spec.annex = &annex;
  Books& books = books_[job];
  books.rank = rank, books.put_by = self;
  const std::uint64_t called = books.put_called = Fibers::now();
  const bool replaces = conflict == OnConflict::kReplace;
  if (replaces) {
    // Those are in its hands until it is decided, and may come back.
    for (const unsigned other : unique_) {
      Books& rival = books_[other];
      if (rival.cancel_called == 0) rival.cancel_called = called;
      rival.end_called = rival.may_return = true;
    }
    replaced_ = true;
  }
  // What comes while it is at it may be replaced too, by it or before it returns.
  books.may_return = books.may_return || replaced_;
  books.end_called = books.end_called || replaced_;
  unique_.push_back(job);
  const Outcome outcome = actor(self).enqueue(spec, books.id);
  if (outcome == Outcome::kOk) {
    ++unique_accepted_;
    if (replaces)
      for (const unsigned other : unique_)
        if (other != job && books_[other].put_returned != 0 && books_[other].put_returned < called)
          books_[other].end(Fibers::now());
    return let_in(self, job);
  }
  if (no_slot(outcome) || outcome == Outcome::kBusy) return;
  if (outcome != Outcome::kClash || replaces) {
    wrong_ += "a unique job was neither accepted nor refused; ";
    return;
  }
  const bool in_the_way = std::any_of(unique_.begin(), unique_.end(), [&](unsigned other) {
    return other != job && (!books_[other].ended || books_[other].ended_at >= called);
  });
  if (!in_the_way) wrong_ += "a unique job was refused, and no other was there; ";
}

void World::revive_unique(std::uint32_t self, unsigned job) {
  Books& books = books_[job];
  const std::uint64_t called = Fibers::now();
  // Until it is decided it may live or not.
  books.ended = false;
  books.end_called = replaced_;
  books.cancel_called = called;
  books.comes_back = books.may_return = true;
  engine::JobState found{};
  const Outcome outcome = actor(self).retry(books.id, engine::Lost::kAny, found);
  books.comes_back = false;
  if (outcome == Outcome::kClash && revival_ == Revival::kNone) revival_ = Revival::kRefused;
  if (outcome == Outcome::kOk) {
    revival_ = Revival::kDone;
    return;
  }
  books.end_called = true;
  books.end(Fibers::now());
  // kBusy: the rival stood still, and may give way to what it saw of this one. kNotFound: meanwhile
  // the slot was used again.
  if (outcome != Outcome::kClash && outcome != Outcome::kBusy && outcome != Outcome::kNotFound)
    wrong_ += "a unique job did not come back, and no other was in its way; ";
}

/// One of those that came at once was let in; and when no job of the key is there any more, the key
/// is free.
std::string World::unique_text(std::uint32_t by) {
  if (unique_.empty()) return {};
  std::string text;
  if (dead_.empty() && unique_accepted_ == 0 && !stand_still())
    text += "of all unique jobs none was let in; ";
  if (dead_.empty() && revival_ == Revival::kRefused && unique_accepted_ == 1)
    text += "a unique job did not come back, and no other came; ";
  const bool held = std::any_of(unique_.begin(), unique_.end(), [this](unsigned job) {
    return std::find(std::begin(holds_), std::end(holds_), static_cast<int>(job) + 1) !=
           std::end(holds_);
  });
  if (held) return text;
  engine::NewJob spec = job_named(unique_.front(), 0);
  const engine::NewAnnex annex = annex_for(OnConflict::kReject);
  spec.annex = &annex;
  engine::JobId id;
  if (const Outcome outcome = actor(by).enqueue(spec, id); outcome != Outcome::kOk)
    text += "the key stays taken (" + std::to_string(static_cast<int>(outcome)) + "); ";
  return text;
}

}  // namespace ojs_shm::test
