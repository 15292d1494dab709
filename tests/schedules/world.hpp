// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/actor.hpp"
#include "engine/unique/unique.hpp"
#include "tests/schedules/world_pages.hpp"
#include "tests/support/process.hpp"

namespace ojs_shm::test {

/// A tiny segment that begins anew for each run, one lane for each fiber and two for a lane that
/// repairs, and the books of what was promised: every operation notes when it was called and when
/// it returned, by the clock of the run.
class World {
 public:
  static constexpr std::uint32_t kFibers = 3, kJanitor = 4, kSecondJanitor = 5, kLanes = 6;
  static constexpr unsigned kJobs = 18;
  /// Four jobs wait, and each of two fibers may put in a batch of two more, which no lane takes
  /// before the verdict; with few there is room for those four alone.
  static constexpr std::uint32_t kSlots = 8, kFewSlots = 4;

  /// Without one clock, what two fibers do is ordered by nothing but what the second saw of the
  /// first.
  explicit World(bool one_clock = true, std::uint32_t slots = kSlots);
  void begin_anew();
  engine::Actor& actor(std::uint32_t lane) { return *actors_[lane]; }
  engine::Store& store() { return *store_; }

  // Operations of the fiber `self` on jobs that are known by small numbers.
  void put(std::uint32_t self, unsigned job, std::uint8_t rank);
  /// In the part of a rate of its own.
  void put_rated(std::uint32_t self, unsigned job, std::uint8_t rank, unsigned rate = 7);
  /// Of a tenant.
  void put_for(std::uint32_t self, unsigned job, std::uint8_t rank, unsigned tenant);
  /// As put() and take(), in the queue of that name, which may not be there yet.
  void put_into(std::uint32_t self, unsigned job, std::string_view queue);
  void take_from(std::uint32_t self, std::string_view queue);
  /// Under names that no lane may have used yet.
  void rank_type(std::uint32_t self, std::string_view type, std::uint8_t rank);
  void weigh_tenant(std::uint32_t self, std::string_view tenant, std::uint32_t weight);
  void set_pool(std::uint32_t self, std::string_view pool);
  /// A cron of that job, whose time has come; it is fired, or removed.
  void set_cron(std::uint32_t self, unsigned job);
  void fire_cron(std::uint32_t self);
  void remove_cron(std::uint32_t self);
  /// A worker of that id: it registers, gives a sign of life, is ended for its silence, or leaves.
  void register_worker(std::uint32_t self, std::string_view id, std::string_view details);
  void sign_of_life(std::uint32_t self, std::string_view id);
  void end_silent_workers(std::uint32_t self);
  void remove_worker(std::uint32_t self, std::string_view id);
  void direct_worker(std::uint32_t self, std::string_view id);
  /// As take(), in the name of that worker.
  void take_as(std::uint32_t self, std::string_view id);
  /// As take(), for a client, who gets the job with hand_over().
  void take_for_client(std::uint32_t self);
  void hand_over(std::uint32_t self);
  /// A turn of two parties that have shares of 2 and 1, of which the second may have nothing.
  void take_share(bool both = true);
  /// Every worker has been silent for too long.
  void silence();
  void may_end_workers() { ends_workers_ = true; }
  /// Brings the same id as any other that does so in this run: one of them is let in.
  void bring_beside(std::uint32_t self, unsigned job);
  /// Jobs 0 and 1 at once, and job 2 after both.
  void make_workflow(std::uint32_t self);
  void cancel_workflow(std::uint32_t self);
  /// Unique under one key for all: one that is refused found another alive.
  void put_unique(std::uint32_t self, unsigned job, std::uint8_t rank, engine::OnConflict conflict);
  /// A unique job that was cancelled comes back, unless another has its key.
  void revive_unique(std::uint32_t self, unsigned job);
  void put_again(std::uint32_t self);  ///< a duplicate: admitted, then refused and taken back
  void put_batch(std::uint32_t self, unsigned first, std::uint8_t rank);  ///< two jobs
  /// Two jobs at once, the second into the queue "r".
  void put_spread(std::uint32_t self, unsigned first);
  bool take(std::uint32_t self);
  /// Two jobs one after the other, the second with what the look for the first has proved.
  void take_finish_twice(std::uint32_t self);
  void finish(std::uint32_t self);
  void give_back(std::uint32_t self);
  void leave(std::uint32_t self);  ///< as a handle that is closed
  void fail(std::uint32_t self);
  void beat(std::uint32_t self);  ///< and reports progress
  /// Of the job that the last fiber holds, a message, or a checkpoint that no later report may
  /// lose.
  void say(std::uint32_t self);
  void keep_checkpoint(std::uint32_t self);
  void cancel(std::uint32_t self, unsigned job);
  void move(std::uint32_t self, unsigned job, std::uint8_t rank);
  /// Only upwards; the job has no worse a rank from then on.
  void raise(std::uint32_t self, unsigned job, std::uint8_t rank);
  void pack(std::uint32_t self);
  void pass_dead(std::uint32_t self);  ///< hints at the head of any ring, as a fetch does
  /// Clears the bits of all levels that it finds empty, as a fetch does after some passes.
  void close_levels(std::uint32_t self);
  /// What was fetched and came back is a waiting job like any other from here on.
  void forget_fetches();
  void forget_empties() { empties_.clear(); }
  /// The id that put_again() brings.
  void bring(unsigned job);
  /// From here on an enqueue may be refused.
  void bound(std::uint64_t max_depth);
  /// As bound(), which warns of nothing; lanes 0 and 1 put in a job each and know what is there.
  void bound_known(std::uint64_t max_depth);
  /// The job has waited for so much longer: which one is the oldest must not hang on the clock.
  void older(unsigned job, std::uint64_t ms);
  /// As bound(), and a full queue drops older jobs; or a lane that is ready to waits for room.
  void drop_at(std::uint64_t max_depth);
  void block_at(std::uint64_t max_depth);
  /// As put(), ready to wait: asleep when there is no room, with a place among those who wait.
  void put_patiently(std::uint32_t self, unsigned job, std::uint8_t rank);
  void give_up(std::uint32_t self);
  /// So many of each tenant may wait from here on; while a lane counts what waits already, more
  /// may come.
  void bound_tenants(std::uint32_t self, std::uint64_t max_depth);
  /// No account is free; nothing stands in any of them.
  void give_all_accounts();
  /// Another tenant, whose search for an account begins with that of `tenant`, which has one.
  unsigned next_to(unsigned tenant) const;
  /// Who waits need not be called before a second job has left.
  void rest(std::uint32_t self);
  void publish_finished(std::uint32_t self) { actor(self).slots().rest(); }
  void drop_expired(std::uint32_t self);
  void keep_results(std::uint64_t retention_ms) { store_->header().retention_ms = retention_ms; }
  /// The heads of all levels are compared from here on; no lane waits long enough for it to make a
  /// difference.
  void age();
  /// As the default of all queues; a lane that makes one just then follows it or does not.
  void age_by_default(std::uint32_t self);
  /// Tenants share from here on, or no longer; so many jobs of one come in a row.
  void share(std::uint32_t self, bool on = true, unsigned weight = 1, bool across = false);
  /// A job of the key "k", of which so many may be at work from here on.
  void put_limited(std::uint32_t self, unsigned job, std::uint8_t rank);
  void limit(std::uint32_t concurrency, std::uint32_t self = kJanitor);
  void name_limit();  ///< the key alone: jobs may bring it before it limits anything
  /// So many may begin in a period of weeks, counted in one of three ways; or in two, and the
  /// others are put off.
  enum class Rate : std::uint8_t { kFixed, kSliding, kThrottle, kPutsOff };
  void rate(Rate kind, std::uint32_t most);
  /// A job that brings the key "b"; and a lane that gives up what keys no lane needs.
  void put_brought(std::uint32_t self, unsigned job, std::uint8_t rank);
  void give_keys_up(std::uint32_t self);
  /// So many shards from here on: who puts a job in or takes one is at home in that of its number.
  void shard(std::uint32_t self, unsigned shards);
  /// Ranks 1 and 3 take turns; no other has any.
  void take_turns();
  /// Every fetch is for a pool from here on. With two queues, jobs of rank 3 go to the second, and
  /// the queues take turns.
  void serve_a_pool(unsigned queues);
  /// All that happens is told from here on; everybody's page is nearly full.
  void tell();
  /// As the supervisor: says so when nothing waits.
  void settle(std::uint32_t self) { actor(self).has_waiting(0); }
  /// Among the sleepers of the queue, as a worker that found nothing; asleep when it sees no work
  /// then.
  void lie_down(std::uint32_t self);
  /// As the supervisor: what is due, and leases that are over.
  void tend(std::uint32_t self);

  /// The holder's process is dead from here on.
  void died(std::uint32_t fiber) {
    dead_.push_back(fiber), works_[fiber] = false, note_what_the_dead_hold();
  }
  /// As a lane that finds the dead; may itself be killed, and then the next one begins again.
  void repair();
  /// Repairs, audits, works everything off and audits again; empty when all promises were kept.
  std::string verdict();

 private:
  struct Take {
    std::uint64_t called, returned;
    std::uint32_t by;
  };
  struct Move {
    std::uint64_t called, returned;
    std::uint8_t rank;
  };
  struct Books {
    std::uint8_t rank = 0;
    unsigned tenant = 0;
    std::uint32_t queue = 0;
    std::uint32_t put_by = kJanitor;
    std::uint64_t put_called = 0, put_returned = 0;
    std::uint64_t cancel_called = 0, move_called = 0;
    engine::JobId id;
    std::vector<Take> takes;
    bool passed_over = false;   ///< was in the hands of a drop that was refused
    bool may_return = false;    ///< given back, failed, or its holder may have died
    bool half_fetched = false;  ///< by one who died before it had it
    bool died_with = false;     ///< by one who had it, although the fetch never returned
    bool undelivered = false;   ///< by one who died with it, before its client had it
    bool end_called = false, ended = false;
    bool comes_back = false;  ///< a call that brings it back has not returned
    std::uint64_t ended_at = 0;
    void end(std::uint64_t now) { ended = true, ended_at = now; }
    std::uint32_t drained = 0;
    std::uint8_t rank_at_the_end = 0;
    std::uint8_t raised_to = 0xFF;  ///< the best that was answered with ok
    std::vector<Move> moves;        ///< that were answered with ok
  };
  struct Empty {
    std::uint64_t called, returned;
    std::uint32_t by, queue = 0;
  };
  /// A queue, or a setting of a type or a tenant, and who called for it.
  struct Called {
    std::string_view name;
    std::uint64_t value = 0;
    std::uint32_t by = 0;
    bool returned = false;
  };
  struct Sharding {
    unsigned shards = 1;
    std::uint64_t called = 0, returned = 0;
    std::uint32_t by = kJanitor;
  };
  static constexpr unsigned kUnknown = ~0U;
  static constexpr std::uint64_t kNever = ~0ULL;
  engine::NewJob job_named(unsigned job, std::uint8_t rank);
  void put(std::uint32_t self, unsigned job, const engine::NewJob& spec);
  /// Where there are few slots an enqueue may be refused for want of one.
  bool no_slot(engine::Outcome outcome) const {
    return outcome == engine::Outcome::kNoSlots && store_->slots() < kSlots;
  }
  engine::Outcome fetch(std::uint32_t self, std::uint32_t queue);
  bool take(std::uint32_t self, std::uint32_t queue);
  void ended(std::uint32_t self, unsigned job, bool accepted);
  bool committed_fetches(std::uint32_t lane) const;
  bool took(std::uint32_t self, std::uint32_t queue, engine::Outcome outcome, std::uint64_t called);
  std::uint32_t queue_named(std::uint32_t self, std::string_view name);
  void put_together(std::uint32_t self, unsigned first, const std::array<engine::NewJob, 2>& jobs);
  std::string names_text();
  std::string crons_text() const;
  std::string workers_text() const;
  std::string settings_text(const std::vector<Called>& settings,
                            const std::function<std::uint64_t(std::string_view)>& found) const;
  unsigned number_of(const engine::Fetched& fetched) const;
  std::string audit_text() const;
  std::string order_text() const;
  bool goes_first(const Books& other, const Books& mine, const Take& take, bool stood_before) const;
  bool never_empty(const Empty& empty) const;
  std::uint32_t shards_during(std::uint32_t by, std::uint64_t called, std::uint64_t returned) const;
  unsigned line_of(const Books& books) const;
  std::vector<shm::RingSet*> ring_sets() const;
  std::string batches_text(const std::vector<unsigned>& line) const;
  std::string moves_text(const std::vector<unsigned>& line) const;
  std::string bound_text();
  std::string drop_text();
  std::string room_text();
  std::string tenants_text() const;
  std::string workflow_text() const;
  std::string unique_text(std::uint32_t by);
  std::string tenant_bound_text();
  std::string rate_text();
  std::string told_text() const;
  std::string checkpoint_text() const;
  std::string ring_text() const;
  void let_in(std::uint32_t self, unsigned job);
  std::string turns_text() const;
  bool limited(unsigned job) const;
  void count_work(std::uint32_t self, bool works);
  bool was_dead(std::uint32_t lane) const;
  /// Whether what `one` did before `other` by the clock came before it for `other` too.
  bool ordered(std::uint32_t one, std::uint32_t other) const {
    return one_clock_ || one == other || one >= kJanitor;
  }
  void note_what_the_dead_hold();
  void note_a_refused_drop();

  bool one_clock_;
  ScratchDirectory folder_;
  shm::Segment segment_;
  std::unique_ptr<WorldPages> pages_;
  std::unique_ptr<engine::Store> store_;
  std::unique_ptr<engine::Actor> actors_[kLanes];
  std::string bodies_[kLanes];
  engine::Fetched held_[kLanes];
  int holds_[kLanes] = {};  ///< job number + 1
  std::vector<std::string> texts_;
  std::vector<Books> books_;
  std::vector<Empty> empties_;
  std::uint64_t max_depth_ = 0, returned_ = 0;  ///< what comes back may pass the bound
  std::uint64_t tenant_depth_ = 0;
  bool tenants_counted_ = false;  ///< from the beginning
  bool dropping_ = false, blocking_ = false;
  struct Place {
    engine::RoomPlace in_line;
    std::uint64_t since = 0;
    unsigned job = 0;
    bool rests = false;
    bool held() const { return in_line.held(); }
  };
  Place places_[kLanes];
  bool asleep_[kLanes] = {};
  /// the word it sleeps on, before it looked for work the last time
  std::uint32_t parked_[kLanes] = {};
  bool beaten_[kLanes] = {};  ///< the last beat was granted
  bool checkpoint_kept_ = false;
  bool serves_[kLanes] = {};  ///< clients
  std::vector<std::uint32_t> dead_;
  bool turns_ = false, shares_ = false, across_ = false;
  std::vector<Sharding> shardings_;
  bool crossed_ = false;             ///< two of them at once: either may hold
  std::uint32_t limit_ = 0;          ///< 0: none
  std::uint64_t limited_since_ = 0;  ///< when it was set
  std::vector<unsigned> limited_;    ///< jobs of the key
  bool works_[kLanes] = {};          ///< on one of them
  std::uint32_t rate_ = 0;           ///< 0: none
  unsigned given_back_ = 0;          ///< jobs of the key
  /// With three preemptions each of two may stand still until the other's patience is over: both
  /// are told to ask again.
  static bool stand_still() { return std::getenv("OJS_SHM_SCHEDULES_DEEP") != nullptr; }

  unsigned brought_ = 0, accepted_ = 0;  ///< of one id
  bool workflow_ = false;
  std::vector<unsigned> unique_;  ///< jobs that were brought under the one unique key
  unsigned unique_accepted_ = 0;
  bool replaced_ = false;  ///< some of them were to replace others
  enum class Revival : std::uint8_t { kNone, kRefused, kDone } revival_ = Revival::kNone;
  bool tells_ = false;
  unsigned pool_queues_ = 0;       ///< 0: fetches are for no pool
  std::vector<unsigned> batches_;  ///< the first job of each
  std::vector<Called> queues_, types_, tenants_;
  std::vector<unsigned> cron_jobs_;
  bool registered_ = false, ends_workers_ = false;
  int shares_taken_[2] = {};
  std::string wrong_;
};

}  // namespace ojs_shm::test
