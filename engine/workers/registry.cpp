// SPDX-License-Identifier: Apache-2.0
#include "engine/workers/registry.hpp"

#include <algorithm>

#include "engine/actor.hpp"
#include "engine/tables/job_look.hpp"

namespace ojs_shm::engine {

using shm::Point;

namespace {

void put_details(WorkerRecord& record, std::string_view details) {
  record.details_length.store(0, Point::kWorkerTold);
  record.version.store(record.version.load() + 1, Point::kWorkerTold);  // PAIR worker-details
  shm::copy_in(record.details, details.data(),
               details.size());  // NO CRASH POINT: without its length it is none
  record.details_length.store(details.size(), Point::kWorkerTold);
}

}  // namespace

// ---- registering --------------------------------------------------------------------------------

Registry::Registry(Actor& actor) : actor_(actor), store_(actor.store()) {}

/// A place for a worker of that hash: 1. that of its last life; 2. one that is free; 3. that of the
/// worker which ended first.
std::uint32_t Registry::place_for(std::uint32_t hash) const {
  std::uint32_t free = kNoIndex, gone = kNoIndex;
  std::uint64_t oldest = ~0ULL;
  for (std::uint32_t place = 0; place < store_.workers.size(); ++place) {
    const WorkerControl control(store_.worker_marks[place].control.load());
    if (control.phase() == WorkerPhase::kFree) {
      if (free == kNoIndex) free = place;
    } else if (control.phase() == WorkerPhase::kGone) {
      if (control.hash() == hash) return place;
      if (const std::uint64_t ms = WorkerSign(store_.worker_marks[place].sign.load()).ms();
          ms < oldest)
        oldest = ms, gone = place;
    }
  }
  return free != kNoIndex ? free : gone;
}

/// After this lane has taken a place. Of two lanes that take places for one id at once each sees
/// the other's, or one of them sees a worker: 1. the worker is there, and the place is given back;
/// 2. the lane with the smaller place goes on; 3. it waits until the other one has given its place
/// back, or has made the worker without having seen this lane. A lane that seems to be stopped is
/// not waited for.
Registry::Rivals Registry::rivals(std::uint32_t place, std::uint32_t hash,
                                  std::string_view id) const {
  for (std::uint32_t other = 0; other < store_.workers.size(); ++other) {
    if (other == place) continue;
    for (unsigned look = 0;; ++look) {
      const WorkerControl control(store_.worker_marks[other].control.load_seq_cst());
      if (control.unused() || control.hash() != hash) break;
      const WorkerRecord& record = store_.workers[other];
      if (control.lives()) {
        if (text_in(record.id, record.id_length) == id) return Rivals::kSome;  // 1
        break;
      }
      if (other < place) return Rivals::kSome;  // 2
      if (look >= kPatience) return Rivals::kStopped;
      shm::wait_for_another(look);  // 3
    }
  }
  return Rivals::kNone;
}

/// Everything that a record says, before any lane can see it.
void Registry::name(std::uint32_t place, std::uint64_t life, const WorkerReport& report) {
  WorkerRecord& record = store_.workers[place];
  const std::uint64_t now = store_.now_ms();
  record.registered_at.store(now, Point::kWorkerNamed);
  record.order.store(0, Point::kWorkerNamed);
  record.load.store(
      WorkerLoad(life, report.concurrency.value_or(0), report.active.value_or(0)).word,
      Point::kWorkerNamed);
  record.pool.store(report.pool.value_or(0), Point::kWorkerNamed);
  record.lane.store(report.native ? actor_.lane() + 1 : 0, Point::kWorkerNamed);
  record.traits.store(
      (report.pledges ? kWorkerPledged : 0) | (report.drains.value_or(false) ? kWorkerDrains : 0),
      Point::kWorkerNamed);
  record.returned.store(0, Point::kWorkerNamed);
  record.silence_ms.store(report.silence_ms.value_or(0), Point::kWorkerNamed);
  record.id_length.store(report.id.size(), Point::kWorkerNamed);
  shm::copy_in(record.id, report.id.data(),
               report.id.size());  // NO CRASH POINT: the record is not a worker's yet
  put_details(record, report.details.value_or(""));
  store_.worker_marks[place].sign.store(WorkerSign(now, life).word, Point::kWorkerNamed);
}

/// Under the id there is no worker as far as this lane knows: 1. there is one, after all; 2. it is
/// being ended, and this lane does the rest; 3. another lane makes it; 4. this lane takes a place,
/// and makes it unless it is not alone.
Outcome Registry::claim(const WorkerReport& report, std::uint32_t hash, WorkerKey& key) {
  for (unsigned look = 0; look < kPatience; ++look) {
    if (look != 0) shm::wait_for_another(look - 1);
    if (const WorkerKey known = named_worker(store_, hash, report.id); !known.none()) {
      key = known;
      if (!worker_lives(store_, key)) {  // 2
        conclude(key.place(), nullptr);
        continue;
      }
      if (const Outcome updated = update(report, key); updated != Outcome::kLost)
        return updated;  // 1
      continue;
    }
    const std::uint32_t place = place_for(hash);
    if (place == kNoIndex) return Outcome::kNoWorkers;
    WorkerMark& mark = store_.worker_marks[place];
    const WorkerControl found(mark.control.load());
    const WorkerControl taken = found.taken(hash, actor_.lane() + 1);
    if (!found.unused() || !mark.control.cas_once(found.word, taken.word, Point::kWorkerTaken))
      continue;                                                                           // 3
    if (const Rivals others = rivals(place, hash, report.id); others != Rivals::kNone) {  // 4
      mark.control.store(taken.to(WorkerPhase::kFree, 0).word, Point::kWorkerFreed);
      if (others == Rivals::kStopped) return Outcome::kBusy;
      continue;
    }
    name(place, taken.life(), report);
    mark.control.store(taken.to(WorkerPhase::kAlive, 0).word,
                       Point::kWorkerBorn);  // PAIR worker-name
    key = WorkerKey(place, taken.life());
    if (actor_.tellings().on()) {
      actor_.tellings().about_worker(EventKind::kWorkerStarted, report.id,
                                     report.concurrency.value_or(0), 0);
      if (report.drains.value_or(false)) tell_turn(store_.workers[place], false);
    }
    return Outcome::kOk;
  }
  return Outcome::kBusy;
}

Outcome Registry::report(const WorkerReport& report, WorkerKey& key) {
  if (report.id.empty() || report.id.size() > kLongestWorkerId ||
      (report.details && report.details->size() > kLongestWorkerDetails))
    return Outcome::kTooLarge;
  return claim(report, worker_hash(report.id), key);
}

/// It takes jobs from now on, or takes no more.
void Registry::tell_turn(const WorkerRecord& record, bool takes_jobs) const {
  if (!actor_.tellings().on()) return;
  actor_.tellings().about_worker(takes_jobs ? EventKind::kWorkerResumed : EventKind::kWorkerQuiet,
                                 text_in(record.id, record.id_length),
                                 WorkerLoad(record.load.load()).active(), 0);
}

/// Writes in a living worker's record, one lane at a time. kLost: it does not live any more.
template <class Write>
Outcome Registry::change(WorkerKey key, const Write& write) {
  Word& control = store_.worker_marks[key.place()].control;
  for (unsigned look = 0; look < kPatience; ++look) {
    const WorkerControl found(control.load());
    if (!found.lives() || found.life() != key.life()) return Outcome::kLost;
    const WorkerControl changing = found.to(WorkerPhase::kChanging, actor_.lane() + 1);
    if (found.phase() == WorkerPhase::kChanging ||
        !control.cas_once(found.word, changing.word, Point::kWorkerChanging)) {
      shm::wait_for_another(look);
      continue;
    }
    WorkerRecord& record = store_.workers[key.place()];
    const bool took_jobs = takes_jobs(record);
    write(record);
    const bool takes = takes_jobs(record);
    control.store(found.to(WorkerPhase::kAlive, 0).word, Point::kWorkerChanged);
    if (takes != took_jobs) tell_turn(record, takes);
    return Outcome::kOk;
  }
  return Outcome::kBusy;
}

/// What is told and stands there already is not written again.
Outcome Registry::update(const WorkerReport& report, WorkerKey key) {
  if (!beat(key)) return Outcome::kLost;
  const WorkerRecord& record = store_.workers[key.place()];
  const std::uint64_t pool = record.pool.load();
  if (report.pool && *report.pool != 0 && pool != 0 && *report.pool != pool)
    return worker_lives(store_, key) ? Outcome::kOtherPool : Outcome::kLost;
  const WorkerLoad before(record.load.load());
  const std::uint64_t traits = record.traits.load();
  const std::uint64_t pledged = report.pledges ? kWorkerPledged : traits & kWorkerPledged;
  const std::uint64_t drains =
      report.drains ? (*report.drains ? kWorkerDrains : 0) : traits & kWorkerDrains;
  const WorkerLoad load(key.life(), report.concurrency.value_or(before.most()),
                        report.active.value_or(before.active()));
  const bool repooled = report.pool && *report.pool != pool && pool == 0;
  const bool reordered = report.registers && record.order.load() != 0;
  const bool retold =
      report.details && *report.details != text_in(record.details, record.details_length);
  const std::uint64_t silence = report.silence_ms.value_or(record.silence_ms.load());
  if (load.word == before.word && traits == (pledged | drains) &&
      silence == record.silence_ms.load() && !repooled && !reordered && !retold)
    return Outcome::kOk;
  return change(key, [&](WorkerRecord& mine) {
    if (repooled) mine.pool.store(*report.pool, Point::kWorkerTold);
    if (reordered) mine.order.store(0, Point::kWorkerTold);
    mine.load.store(load.word, Point::kWorkerTold);
    mine.traits.store(pledged | drains, Point::kWorkerTold);
    mine.silence_ms.store(silence, Point::kWorkerTold);
    if (retold) put_details(mine, *report.details);
  });
}

bool Registry::beat(WorkerKey key) {
  if (key.none() || key.place() >= store_.workers.size()) return false;
  Word& word = store_.worker_marks[key.place()].sign;
  const std::uint64_t now = store_.now_ms();
  std::uint64_t found = word.load();
  for (;;) {
    const WorkerSign sign(found);
    if (sign.over() || sign.life() != key.life()) return false;
    if (sign.ms() >= now) return true;
    if (word.cas(found, WorkerSign(now, key.life()).word, Point::kWorkerBeat)) return true;
  }
}

Outcome Registry::order(std::string_view id, WorkerOrder order) {
  const WorkerKey key = find_worker(store_, id);
  if (key.none()) return Outcome::kNotFound;
  const Outcome changed = change(key, [order](WorkerRecord& record) {
    record.order.store(static_cast<std::uint64_t>(order), Point::kWorkerTold);
  });
  return changed == Outcome::kLost ? Outcome::kNotFound : changed;
}

void Registry::count(WorkerKey key, std::int32_t jobs) {
  if (key.none() || key.place() >= store_.workers.size()) return;
  Word& word = store_.workers[key.place()].load;
  std::uint64_t found = word.load();
  for (;;) {
    const WorkerLoad load(found);
    if (load.life() != key.life()) return;
    const auto active = std::max<std::int64_t>(std::int64_t{load.active()} + jobs, 0);
    if (word.cas(found,
                 WorkerLoad(key.life(), load.most(), static_cast<std::uint64_t>(active)).word,
                 Point::kWorkerCounted))
      return;
  }
}

// ---- the end ------------------------------------------------------------------------------------

/// The one write that ends a worker: a beat of it comes before, or finds that it is ended.
bool Registry::end(std::uint32_t place, WorkerSign sign, WorkerEnd how) {
  return store_.worker_marks[place].sign.cas_once(sign.word, sign.ended(how).word,
                                                  Point::kWorkerEnded);
}

bool Registry::leave(WorkerKey key) {
  if (key.none() || key.place() >= store_.workers.size()) return false;
  for (;;) {
    const WorkerSign sign(store_.worker_marks[key.place()].sign.load());
    if (sign.over() || sign.life() != key.life()) return false;
    if (end(key.place(), sign, WorkerEnd::kLeft)) break;
  }
  conclude(key.place(), nullptr);
  return true;
}

bool Registry::forget(std::string_view id) {
  bool forgotten = false;
  for (std::uint32_t place = 0; place < store_.workers.size(); ++place) {
    WorkerMark& mark = store_.worker_marks[place];
    const WorkerControl control(mark.control.load());
    const WorkerRecord& record = store_.workers[place];
    if (control.phase() == WorkerPhase::kGone && text_in(record.id, record.id_length) == id &&
        mark.control.cas_once(control.word, control.to(WorkerPhase::kFree, 0).word,
                              Point::kWorkerFreed))
      forgotten = true;
  }
  return forgotten;
}

/// Gives the jobs of an ended worker to others. Its lease on each is declared over first, by the
/// word that its beats for the job move: it sees that, or we see the beat, and then take the job
/// all the same.
std::uint64_t Registry::return_jobs(WorkerKey key, std::uint64_t silent_ms) {
  const std::string message =
      "the worker gave no sign of life for " + std::to_string(silent_ms / 1000) + " s";
  std::uint64_t returned = 0;
  for (std::uint32_t slot = 0; slot < store_.slots(); ++slot) {
    JobRecord& job = store_.job(slot);
    const Control control(job.control.load());  // PAIR slot-active
    if (control.state() != kSlotActive || WorkerKey(job.pool_word.get()) != key) continue;
    std::uint64_t found = job.deadline.load();  // PAIR lease
    while (Deadline(found).belongs_to(control.tag()) && Deadline(found).ms() != 0 &&
           !job.deadline.cas(found, Deadline(0, control.tag()).word, Point::kLeaseEnded)) {}
    const ErrorEntry error{store_.now_ms(), job.attempt.get(), true, "worker_death",
                           "worker_death",  message,           {}};
    if (actor_.set_back(slot, control.word, Setback::kHolderDeath, &error).outcome == Outcome::kOk)
      ++returned;
  }
  return returned;
}

/// Does the rest for an ended worker. False: a lane is still writing in its record.
bool Registry::conclude(std::uint32_t place, std::vector<LostWorker>* lost) {
  WorkerMark& mark = store_.worker_marks[place];
  const WorkerSign sign(mark.sign.load());
  const WorkerControl control(mark.control.load());
  if (!control.lives() || !sign.over() || sign.life() != control.life()) return true;
  if (control.phase() == WorkerPhase::kChanging) return false;
  WorkerRecord& record = store_.workers[place];
  const WorkerKey key(place, control.life());
  const bool lapsed =
      sign.end() == WorkerEnd::kSilent && (record.traits.load() & kWorkerPledged) != 0;
  const std::uint64_t now = store_.now_ms(), silent = now - std::min(now, sign.ms());
  const std::string id = text_in(record.id, record.id_length);
  const std::uint64_t lived = now - std::min(now, record.registered_at.load());
  if (mark.control.load() != control.word) return true;  // what was read may be of the next worker
  const std::uint64_t jobs = lapsed ? return_jobs(key, silent) : 0;
  if (jobs != 0) record.returned.fetch_add(jobs, Point::kWorkerTold);
  const WorkerPhase phase =
      sign.end() == WorkerEnd::kLeft ? WorkerPhase::kFree : WorkerPhase::kGone;
  if (!mark.control.cas_once(control.word, control.to(phase, 0).word, Point::kWorkerFreed))
    return false;
  const bool tells = actor_.tellings().on();
  if (!lapsed) {
    if (tells)
      actor_.tellings().about_worker(EventKind::kWorkerStopped, id, 0, lived,
                                     static_cast<std::uint8_t>(sign.end()));
    return true;
  }
  store_.header().workers_lost.fetch_add(1, Point::kCounterMoved);
  if (tells) actor_.tellings().about_worker(EventKind::kWorkerLost, id, jobs, silent);
  if (lost != nullptr) lost->push_back({id, silent, jobs});
  return true;
}

std::uint64_t Registry::look(std::uint64_t now, std::vector<LostWorker>& lost) {
  std::uint64_t next = now + kWorkerSilenceMs;
  for (std::uint32_t place = 0; place < store_.workers.size(); ++place) {
    WorkerMark& mark = store_.worker_marks[place];
    const WorkerSign sign(mark.sign.load());
    const WorkerControl control(mark.control.load());
    if (control.phase() == WorkerPhase::kGone && sign.ms() + kWorkerRememberedMs <= now)
      mark.control.cas_once(control.word, control.to(WorkerPhase::kFree, 0).word,
                            Point::kWorkerFreed);
    if (!control.lives() || sign.life() != control.life()) continue;
    if (!sign.over() && sign.ms() > now + kWorkerSilenceMs)  // the clock was set back
      mark.sign.cas_once(sign.word, WorkerSign(now, sign.life()).word, Point::kWorkerBeat);
    if (const std::uint64_t last = sign.ms() + silence_of(store_.workers[place]);
        !sign.over() && last > now) {
      next = std::min(next, last);
      continue;
    }
    if ((!sign.over() && !end(place, sign, WorkerEnd::kSilent)) || !conclude(place, &lost))
      next = std::min(next, now + 100);
  }
  return next;
}

void Registry::release_dead() {
  const std::uint32_t owner = actor_.lane() + 1;
  for (std::uint32_t place = 0; place < store_.workers.size(); ++place) {
    Word& control = store_.worker_marks[place].control;
    WorkerRecord& record = store_.workers[place];
    WorkerControl found(control.load());
    if (found.owner() == owner && found.phase() == WorkerPhase::kTaken)
      control.store(found.to(WorkerPhase::kFree, 0).word, Point::kWorkerFreed);
    if (found.owner() == owner && found.phase() == WorkerPhase::kChanging) {
      put_details(record, "");
      found = found.to(WorkerPhase::kAlive, 0);
      control.store(found.word, Point::kWorkerChanged);
    }
    if (record.lane.load() != owner || found.phase() != WorkerPhase::kAlive) continue;
    // It was the worker. What it held has gone to others already, so its end is no silence to any
    // lane.
    for (;;) {
      const WorkerSign sign(store_.worker_marks[place].sign.load());
      if (sign.over() || sign.life() != found.life() || end(place, sign, WorkerEnd::kDied)) break;
    }
    control.cas_once(found.word, found.to(WorkerPhase::kGone, 0).word, Point::kWorkerFreed);
  }
}

}  // namespace ojs_shm::engine
