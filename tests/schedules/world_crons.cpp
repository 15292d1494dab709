// SPDX-License-Identifier: Apache-2.0
// Of the world of the schedules: a cron whose time has come. Each job of a cron has a number as any
// other, so one that came twice is seen as such.
#include <algorithm>

#include "engine/crons/crons.hpp"
#include "tests/schedules/fibers.hpp"
#include "tests/schedules/world.hpp"

namespace ojs_shm::test {

using engine::Outcome;

void World::set_cron(std::uint32_t self, unsigned job) {
  engine::NewCron cron;
  cron.texts.name = "c";
  cron.texts.expression = texts_[job];  // another one is due anew
  cron.overlap = engine::CronOverlap::kAllow;
  cron.next = store_->now_ms();
  cron.job = job_named(job, 1);
  cron_jobs_.push_back(job);
  bool made = false;
  const Outcome outcome = actor(self).crons().define(cron, made);
  if (outcome != Outcome::kOk && outcome != Outcome::kBusy) wrong_ += "a cron was refused; ";
}

void World::remove_cron(std::uint32_t self) {
  const Outcome outcome = actor(self).crons().remove("c");
  if (outcome != Outcome::kOk && outcome != Outcome::kBusy) wrong_ += "a cron is not found; ";
}

/// As a supervisor; two may hold themselves for one.
void World::fire_cron(std::uint32_t self) {
  const std::uint64_t now = store_->now_ms();
  const engine::CronFacts seen = engine::look_at_cron(*store_, 0);
  if (!seen.control.enabled() || seen.next == 0 || seen.next > now) return;
  const auto from = engine::read_template(*store_, seen.control.slot());
  if (!from) return;  // it was replaced just then
  const std::string args = from->job.body.substr(from->job.type_length, from->job.args_length);
  const auto job =
      static_cast<unsigned>(std::find(texts_.begin(), texts_.end(), args) - texts_.begin());
  Books& books = books_[job];
  books.rank = 1;
  if (books.put_called == 0) {
    books.put_by = self;
    books.put_called = Fibers::now();
  }
  const Outcome outcome = actor(self).crons().fire(0, seen, now + 3'600'000);
  if (outcome == Outcome::kOk)
    let_in(self, job);
  else if (outcome != Outcome::kEmpty && outcome != Outcome::kBusy)
    wrong_ += "a cron did not fire; ";
}

/// Its jobs are as many as it says, once all of them have come out.
std::string World::crons_text() const {
  const engine::CronFacts facts = engine::look_at_cron(*store_, 0);
  if (cron_jobs_.empty() || !facts.control.there()) return {};
  std::uint64_t jobs = 0;
  for (const unsigned job : cron_jobs_)
    jobs += books_[job].drained != 0 || !books_[job].takes.empty() ? 1 : 0;
  if (facts.next <= store_->now_ms()) return "a time of the cron did not come; ";
  return jobs == facts.runs ? ""
                            : "the cron says " + std::to_string(facts.runs) + " and made " +
                                  std::to_string(jobs) + "; ";
}

}  // namespace ojs_shm::test
