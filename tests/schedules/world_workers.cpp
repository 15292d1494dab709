// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: registered workers.
#include "engine/fetch/turns.hpp"
#include "engine/workers/registry.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

using engine::Outcome;
using engine::WorkerKey;

void World::register_worker(std::uint32_t self, std::string_view id, std::string_view details) {
  engine::WorkerReport report{.id = id, .concurrency = self + 1, .pledges = true};
  report.details = details;
  WorkerKey key;
  const Outcome outcome = engine::Registry(actor(self)).report(report, key);
  if (outcome == Outcome::kBusy) return;
  if (outcome != Outcome::kOk) wrong_ += "a worker was refused; ";
  registered_ = true;
}

void World::sign_of_life(std::uint32_t self, std::string_view id) {
  const WorkerKey key = engine::find_worker(*store_, id);
  engine::Registry registry(actor(self));
  registry.count(key, 1);
  // What was told that it lives is not ended by a look that began before, for no time passes
  // meanwhile.
  const bool ended = registry.beat(key) && !engine::worker_lives(*store_, key);
  if (ended && !ends_workers_) wrong_ += "a worker was ended behind its sign of life; ";
}

void World::end_silent_workers(std::uint32_t self) {
  std::vector<engine::LostWorker> lost;
  engine::Registry(actor(self)).look(store_->now_ms(), lost);
}

void World::remove_worker(std::uint32_t self, std::string_view id) {
  ends_workers_ = true;
  engine::Registry(actor(self)).leave(engine::find_worker(*store_, id));
}

void World::direct_worker(std::uint32_t self, std::string_view id) {
  (void)engine::Registry(actor(self)).order(id, engine::WorkerOrder::kQuiet);
}

void World::take_as(std::uint32_t self, std::string_view id) {
  actor(self).pool_worker().work_as(engine::find_worker(*store_, id));
  if (!take(self)) return;
  books_[static_cast<unsigned>(holds_[self] - 1)].may_return = true;
  holds_[self] = 0;  // it is the worker's, until that is ended
}

void World::take_for_client(std::uint32_t self) {
  actor(self).pool_worker().work_as({}, true);
  serves_[self] = true;
  take(self);
}

void World::hand_over(std::uint32_t self) {
  if (holds_[self] == 0) return;
  const Books& books = books_[static_cast<unsigned>(holds_[self] - 1)];
  if (actor(self).hand_over(held_[self].slot, held_[self].word) != Outcome::kOk &&
      books.cancel_called == 0 && !books.may_return)
    wrong_ += "a hand-over was refused; ";
  const engine::Control held(held_[self].word);
  held_[self].word = engine::Control(held.state(), held.ring(), shm::kLeaseOwner, held.tag()).word;
}

void World::take_share(bool both) {
  const std::vector<std::string> queues = {"a", "b"};
  const std::vector<std::uint32_t> weights = {2, 1};
  const std::uint64_t key = engine::key_of_shares(queues, weights);
  engine::Turns turns(weights, engine::shared_turn(*store_, key), key);
  turns.serve_next(
      [&](std::size_t party) { return (party == 0 || both) && ++shares_taken_[party] != 0; });
}

void World::silence() {
  for (std::uint32_t place = 0; place < store_->workers.size(); ++place) {
    shm::Word& sign = store_->worker_marks[place].sign;
    const engine::WorkerSign found(sign.load());
    if (found.life() != 0)
      sign.store(engine::WorkerSign(store_->now_ms() - 60'000, found.life()).word,
                 shm::Point::kNone);
  }
}

/// One worker of an id, if any; and nothing is left half done. Whole cycles of shares are shared
/// out exactly, but for what the dead took.
std::string World::workers_text() const {
  std::string text;
  const int shares = shares_taken_[0] + shares_taken_[1];
  if (dead_.empty() && shares % 3 == 0 && shares_taken_[1] != 0 &&
      shares_taken_[0] != 2 * shares_taken_[1])
    text += "shares of 2 and 1 came to " + std::to_string(shares_taken_[0]) + " and " +
            std::to_string(shares_taken_[1]) + "; ";
  std::vector<std::string> ids;
  for (std::uint32_t place = 0; place < store_->workers.size(); ++place) {
    const engine::WorkerControl control(store_->worker_marks[place].control.load());
    if (control.owner() != 0) text += "a record of a worker is still being written; ";
    const auto facts = engine::look_at_worker(*store_, place);
    if (!facts || facts->gone) continue;
    for (const std::string& id : ids)
      if (id == facts->id) text += "the worker '" + id + "' is there twice; ";
    ids.push_back(facts->id);
    if (!facts->details.empty() &&
        facts->details.find_first_not_of(facts->details[0]) != std::string::npos)
      text += "what a worker says of itself is mixed up; ";
  }
  if (registered_ && !ends_workers_ && ids.empty())
    text += "a worker that registered is not there; ";
  return text;
}

}  // namespace ojs_shm::test
