// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/proxy.hpp>
#include <ojs_shm/transfer.hpp>
#include <ojs_shm/worker.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/supervision/supervisor.hpp"
#include "tests/fuzz/input.hpp"

namespace ojs_shm::fuzz {

/// Looks at everything that an observer can see.
void look_around(const Segment& segment);
/// Of it, at limits, pools, statistics and the lines of an export.
void look_at_policies(const Observer& seen);

/// Every role at once in an attached segment. Whatever it is answered is right, as long as it is
/// answered.
class Visitor {
 public:
  Visitor(Segment segment, std::vector<std::string> ids);
  ~Visitor();
  Visitor(const Visitor&) = delete;

  /// One operation, as the input says.
  void act(Input& input);

 private:
  using Act = void (Visitor::*)(Input&);
  static const std::vector<Act>& acts();

  void open();
  void close();
  void reopen(Input&) { close(), open(); }
  const std::string& some_id(Input& input);
  Job& some_job(Input& input) { return jobs_[input.below(jobs_.size())]; }
  JobSpec some_spec(Input& input);
  JobSpec some_held_spec(Input& input);
  std::pair<std::string, std::uint64_t> some_attempt(Input& input);
  void remember(std::string_view id);

  void enqueue(Input& input);
  void enqueue_prepared(Input& input);
  void enqueue_batch(Input& input);
  void fetch(Input& input);
  void fetch_batch(Input& input);
  void ack(Input& input);
  void nack(Input& input);
  void requeue(Input& input);
  void heartbeat(Input& input);
  void progress(Input& input);
  void cancel(Input& input);
  void reprioritize(Input& input);
  void activate(Input& input);
  void get(Input& input);
  void retry_dead(Input& input);
  void drop_dead(Input& input);
  void drop(Input& input);
  void set_queue(Input& input);
  void set_default(Input& input);
  void list(Input& input);
  void look(Input& input);
  void mend(Input& input);
  void repair(Input& input);
  void tick(Input& input);

  void enqueue_held(Input& input);
  void enqueue_patiently(Input& input);
  void begin(Input& input);
  void poll(Input& input);
  void fetch_pooled(Input& input);
  void wait(Input& input);
  void set_limit(Input& input);
  void clear_limit(Input& input);
  void set_pool(Input& input);
  void create_workflow(Input& input);
  void cancel_workflow(Input& input);
  void set_cron(Input& input);
  void change_cron(Input& input);
  void fire_crons(Input& input);
  void direct_worker(Input& input);
  void remove_pool(Input& input);
  void set_policy(Input& input);
  void set_default_aging(Input& input);
  void unset_default(Input& input);
  void fetch_for_client(Input& input);
  void hand_over(Input& input);
  void end_by_id(Input& input);
  void tell_by_id(Input& input);
  void report_worker(Input& input);
  void import(Input& input);
  void finish_import(Input& input);
  void run_from_catalogue(Input& input);

  Segment segment_;
  std::string workflow_ = "01961234-5678-7abc-8def-0123456789ab";  ///< created last
  std::vector<std::string> ids_;
  std::optional<Producer> producer_;
  std::optional<Worker> worker_, pooled_;  ///< pooled_: while there is the pool
  std::optional<Admin> admin_;
  std::optional<Proxy> proxy_;
  std::vector<std::pair<std::string, std::uint64_t>>
      held_;  ///< ids and fences that the proxy got last
  std::optional<Import> import_;
  std::vector<WaitingEnqueue> waiting_;  ///< goes before the producer
  JobLimit limit_;
  std::optional<JobUnique> unique_;
  std::array<Job, 4> jobs_;
  std::string args_;
  std::optional<std::uint32_t> lane_;  ///< of the supervisor
  std::unique_ptr<engine::Actor> actor_;
  std::unique_ptr<engine::Supervisor> supervisor_;
};

}  // namespace ojs_shm::fuzz
