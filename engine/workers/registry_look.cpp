// SPDX-License-Identifier: Apache-2.0
#include "engine/workers/registry_look.hpp"

#include "shm/parking.hpp"

namespace ojs_shm::engine {

WorkerKey named_worker(const Store& store, std::uint32_t hash, std::string_view id) {
  for (std::uint32_t place = 0; place < store.workers.size(); ++place) {
    const WorkerControl control(store.worker_marks[place].control.load());  // PAIR worker-name
    if (!control.lives() || control.hash() != hash) continue;
    const WorkerRecord& record = store.workers[place];
    if (text_in(record.id, record.id_length) == id &&
        WorkerControl(store.worker_marks[place].control.load()).life() == control.life())
      return WorkerKey(place, control.life());
  }
  return {};
}

std::optional<WorkerFacts> look_at_worker(const Store& store, std::uint32_t place) {
  const WorkerMark& mark = store.worker_marks[place];
  const WorkerRecord& record = store.workers[place];
  for (unsigned look = 0; look < 64; ++look) {
    const WorkerControl control(mark.control.load());  // PAIR worker-name
    if (!control.lives() && control.phase() != WorkerPhase::kGone) return std::nullopt;
    const std::uint64_t version = record.version.load();
    WorkerFacts facts;
    facts.key = WorkerKey(place, control.life());
    facts.id = text_in(record.id, record.id_length);
    // A lane that seems to be stopped in the middle of a change leaves the rest readable.
    if (control.phase() != WorkerPhase::kChanging)
      facts.details = text_in(record.details, record.details_length);
    const WorkerLoad load(record.load.load());
    const WorkerSign sign(mark.sign.load());
    facts.order = static_cast<WorkerOrder>(std::min<std::uint64_t>(record.order.load(), 2));
    facts.concurrency = load.most();
    facts.active = load.active();
    facts.pool = record.pool.load();
    facts.traits = record.traits.load();
    facts.registered_at = record.registered_at.load();
    facts.last_sign = sign.ms();
    facts.returned = record.returned.load();
    facts.silence_ms = silence_of(record);
    facts.gone = !control.lives() || sign.over();
    facts.died = facts.gone && sign.end() == WorkerEnd::kDied;
    facts.native = record.lane.load() != 0;
    const WorkerControl now(mark.control.load());
    if (now.life() == control.life() && now.phase() == control.phase() &&
        record.version.load() == version)  // PAIR worker-details
      return facts;
    shm::wait_for_another(look);
  }
  return std::nullopt;
}

WorkerKey find_worker(const Store& store, std::string_view id) {
  const WorkerKey key = named_worker(store, worker_hash(id), id);
  return worker_lives(store, key) ? key : WorkerKey();
}

bool worker_lives(const Store& store, WorkerKey key) {
  if (key.none() || key.place() >= store.workers.size()) return false;
  const WorkerMark& mark = store.worker_marks[key.place()];
  const WorkerSign sign(mark.sign.load());
  const WorkerControl control(mark.control.load());
  return sign.life() == key.life() && !sign.over() && control.life() == key.life() &&
         control.lives();
}

namespace {

/// Calls `f` with the key of each active job's holder.
template <class F>
void each_holder(const Store& store, F f) {
  for (std::uint32_t slot = 0; slot < store.slots(); ++slot) {
    const JobRecord& job = store.job(slot);
    const unsigned state = Control(job.control.load()).state();
    if (state == kSlotActive || state == kSlotSettling) f(WorkerKey(job.pool_word.get()));
  }
}

}  // namespace

std::uint64_t jobs_of_worker(const Store& store, WorkerKey key) {
  std::uint64_t jobs = 0;
  each_holder(store, [&](WorkerKey holder) { jobs += holder == key; });
  return jobs;
}

std::unordered_map<std::uint32_t, std::uint32_t> jobs_of_workers(const Store& store) {
  std::unordered_map<std::uint32_t, std::uint32_t> jobs;
  each_holder(store, [&](WorkerKey holder) { ++jobs[holder.word]; });
  return jobs;
}

std::string worker_id_of(const Store& store, WorkerKey key) {
  if (key.none() || key.place() >= store.workers.size()) return {};
  const WorkerRecord& record = store.workers[key.place()];
  const Word& control = store.worker_marks[key.place()].control;
  const WorkerControl before(control.load());  // PAIR worker-name
  if (before.life() != key.life() || before.phase() == WorkerPhase::kFree ||
      before.phase() == WorkerPhase::kTaken)
    return {};
  std::string id = text_in(record.id, record.id_length);
  return WorkerControl(control.load()).life() == key.life() ? id : std::string();
}

}  // namespace ojs_shm::engine
