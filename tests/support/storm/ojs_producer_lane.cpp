// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>
#include <ojs_shm/admin.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/proxy.hpp>
#include <ojs_shm/transfer.hpp>

#include <deque>

#include "tests/support/storm/ojs_lanes.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint32_t kLongestBatch = 16;

class ProducerLane {
 public:
  ProducerLane(Lane& lane, const OjsPlan& plan, Producer producer)
      : lane_(lane), plan_(plan), dice_(lane.seed), producer_(std::move(producer)) {
    if (!plan.everything || lane.member != 0) return;
    admin_ = attach_patiently<Admin>(lane, [&] { return Admin::attach(producer_.segment()); });
  }

  void run() {
    repeat_what_was_cut_off();
    if (admin_) settle_queues();  // the forerunner may have died between pause and resume
    while (!lane_.asked_to_leave()) {
      lane_.step();
      ask_who_waits(false);
      if (lane_.ledger.backlog() > plan_.backlog) {
        nap_us(300);
        continue;
      }
      const bool went_on = dice_.chance(0.1) ? put_batch() : put_one();
      if (!went_on) nap_us(1000);
      if (plan_.everything && !recent_.empty() && dice_.chance(0.2)) meddle();
      if (admin_ && dice_.chance(plan_.policies ? 0.004 : 0.001)) administer();
      if (admin_ && dice_.chance(0.002)) tend_the_dead(lane_, dice_, *admin_, 32);
    }
    ask_who_waits(true);
    if (admin_) settle_queues();
  }

 private:
  struct Known {
    PayloadKey key;
    std::string id;
  };
  struct Waiting {
    std::vector<PayloadKey> keys;
    WaitingEnqueue enqueue;
  };
  static constexpr std::size_t kMostWaiting = 6;

  /// The forerunner's last enqueues with ids of their own that did not return: repeated, each
  /// exists once, as long as the segment remembers those that are finished.
  void repeat_what_was_cut_off() {
    PayloadKey key{lane_.member, 0};
    std::uint64_t next = 0;
    if (plan_.tight || !lane_.ledger.take_sequences(lane_.member, 0, next)) return;
    for (std::uint64_t back = 1; back <= kLongestBatch && back <= next; ++back) {
      key.sequence = next - back;
      const JobRecord* const job = lane_.ledger.find(key);
      if (job == nullptr ||
          job->enqueue.load() != static_cast<std::uint32_t>(EnqueueMark::kAttempted))
        break;
      const PlannedJob planned(key, plan_);
      const bool long_ago =
          monotonic_ns() - job->enqueued_ns.load() > plan_.options.retention_ms * 500'000;
      // What may have been dropped as a dead letter may have left nothing behind.
      if (planned.id.empty() || job->batch.load() != 0 || long_ago || planned.retry.dead_letter)
        break;
      const auto answer = producer_.enqueue(planned.spec());
      if (answer.ok() || answer.code() == Code::kDuplicate) {
        lane_.ledger.enqueue_returned(key, lane_.life, planned.id);
        lane_.book().returned.fetch_add(1);
        if (planned.pending) activate({key, planned.id});
      } else if (answer.code() != Code::kTimeout) {  // its repair is still to come: it is not known
        explain(answer.error(), key);
      }
      lane_.step();
    }
  }

  bool put_one() {
    PayloadKey key{lane_.member, 0};
    if (!lane_.ledger.take_sequences(lane_.member, 1, key.sequence)) return false;
    const PlannedJob planned(key, plan_);
    lane_.ledger.enqueue_begins(key, planned.marks);
    if (plan_.policies && !planned.id.empty() && !planned.has_times() && dice_.chance(0.05))
      return import(key, planned);
    const JobSpec spec = planned.spec();
    if (planned.queue == kWaitingQueue && waiting_.size() < kMostWaiting && dice_.chance(0.5))
      return begin(std::span(&spec, 1), {key});
    const auto answer = enqueue(spec, patience(planned.queue));
    if (planned.unique && met_another(answer)) return left_out(key), true;
    if (!answer.ok()) return refused(answer.error(), {key});
    accepted(key, answer->view());
    if (planned.pending) activate({key, answer->str()});
    return true;
  }

  /// The newcomer was not taken in, for one of its key lives.
  bool met_another(const Result<JobIdText>& answer) const {
    return answer.ok() ? producer_.deduplicated() : answer.code() == Code::kDuplicate;
  }
  void left_out(PayloadKey key) {
    lane_.ledger.enqueue_refused(key);
    lane_.book().refused.fetch_add(1);
  }

  /// At times as one of its kind.
  Result<JobIdText> enqueue(const JobSpec& spec, const EnqueueOptions& options) {
    if (spec.id.empty() && spec.unique == nullptr && dice_.chance(0.2))
      if (const auto kind = producer_.prepare(spec); kind.ok())
        return producer_.enqueue(*kind, spec.args);
    return producer_.enqueue(spec, options);
  }

  bool put_batch() {
    const auto count = static_cast<std::uint32_t>(dice_.between(2, kLongestBatch));
    PayloadKey first{lane_.member, 0};
    if (!lane_.ledger.take_sequences(lane_.member, count, first.sequence)) return false;
    const std::string& queue = queues_[dice_.below(queues_.size())];
    std::deque<PlannedJob> planned;
    std::vector<JobSpec> specs;
    std::vector<PayloadKey> keys;
    for (std::uint32_t place = 0; place < count; ++place) {
      keys.push_back({lane_.member, first.sequence + place});
      planned.emplace_back(keys.back(), plan_, queue);
      lane_.ledger.enqueue_begins(keys.back(), planned.back().marks, count, place);
      specs.push_back(planned.back().spec());
    }
    if (queue == kWaitingQueue && waiting_.size() < kMostWaiting && dice_.chance(0.5))
      return begin(specs, keys);
    return answered(producer_.enqueue_batch(specs, patience(queue)), keys);
  }

  /// How long to wait for room; most do not.
  EnqueueOptions patience(std::string_view queue) {
    const bool waits = queue == kWaitingQueue && dice_.chance(0.05);
    return {.block_timeout = std::chrono::milliseconds(waits ? dice_.between(1, 20) : 0)};
  }

  bool answered(const Result<std::vector<JobIdText>>& answer, const std::vector<PayloadKey>& keys) {
    if (!answer.ok()) return refused(answer.error(), keys);
    if (answer->size() != keys.size())
      lane_.accuse(Offence::kUnexpectedAnswer, keys.front(),
                   fmt::format("{} ids for {} jobs", answer->size(), keys.size()));
    for (std::size_t place = 0; place < keys.size() && place < answer->size(); ++place)
      accepted(keys[place], answer.value()[place].view());
    return true;
  }

  bool begin(std::span<const JobSpec> specs, const std::vector<PayloadKey>& keys) {
    const EnqueueOptions patience{.block_timeout =
                                      std::chrono::milliseconds(dice_.between(1, 500))};
    if (!proxy_ && dice_.chance(0.2)) {
      auto proxy = Proxy::attach(producer_.segment());
      if (proxy.ok()) proxy_ = std::move(proxy).value();
    }
    auto begun = proxy_ && dice_.chance(0.5) ? proxy_->begin_enqueue(specs, patience)
                                             : producer_.begin(specs, patience);
    if (!begun.ok()) return refused(begun.error(), keys);
    if (begun->deadline() > std::chrono::steady_clock::now() + std::chrono::seconds(1))
      lane_.accuse(Offence::kUnexpectedAnswer, keys.front(),
                   "a deadline is later than it was asked for");
    if (begun->deduplicated(keys.size()))
      lane_.accuse(Offence::kUnexpectedAnswer, keys.front(), "a job beyond the last was there");
    if (const auto met = begun->pressure(); met && !(met->pressure >= 0 && met->pressure <= 1))
      lane_.accuse(Offence::kUnexpectedAnswer, keys.front(), "a pressure is not between 0 and 1");
    waiting_.push_back({keys, std::move(begun).value()});
    return true;
  }

  /// Who has got room, or has given up; one now and then loses interest, and `all` do before this
  /// process leaves.
  void ask_who_waits(bool all) {
    if (proxy_ && dice_.chance(0.5)) proxy_->take_decided();
    for (auto one = waiting_.begin(); one != waiting_.end();) {
      const auto answer = one->enqueue.poll();
      if (!answer && !all && !dice_.chance(0.001)) {
        ++one;
        continue;
      }
      const std::vector<PayloadKey> keys = std::move(one->keys);
      one = waiting_.erase(one);
      answered(answer.value_or(Result<std::vector<JobIdText>>(Error{Code::kQueueFull})), keys);
    }
  }

  /// As a line of an export. Bounds refuse nothing of it.
  bool import(PayloadKey key, const PlannedJob& planned) {
    if (!import_) {
      import_ =
          attach_patiently<Import>(lane_, [&] { return Import::attach(producer_.segment()); });
      if (!import_) return false;
      if (const Status head = import_->take(R"({"ojs_shm_export":1,"convention":"ojs"})");
          !head.ok())
        unexpected("import", head.error(), {});
    }
    const Status taken = import_->take(planned.export_line());
    if (!taken.ok()) return refused(taken.error(), {key});
    accepted(key, planned.id);
    return true;
  }

  void accepted(PayloadKey key, std::string_view id) {
    lane_.ledger.enqueue_returned(key, lane_.life, id);
    lane_.book().returned.fetch_add(1);
    if (!plan_.everything) return;
    if (const auto full = producer_.pressure(); full && (full->bound == 0 || full->pressure > 1))
      lane_.accuse(Offence::kUnexpectedAnswer, key,
                   fmt::format("{} of {}", full->depth, full->bound));
    if (!plan_.policies && producer_.deduplicated())
      lane_.accuse(Offence::kUnexpectedAnswer, key, "a job that is not unique was there already");
    recent_.push_back({key, std::string(id)});
    if (recent_.size() > 64) recent_.pop_front();
  }

  bool refused(const Error& error, const std::vector<PayloadKey>& keys) {
    for (const PayloadKey key : keys) lane_.ledger.enqueue_refused(key);
    lane_.book().refused.fetch_add(keys.size());
    explain(error, keys.front());
    return false;
  }

  void explain(const Error& error, PayloadKey key) {
    if (error.code == Code::kQueueFull || error.code == Code::kSegmentFull) return;
    unexpected("enqueue", error, key);
  }

  /// Something else with a job of before: look it up, move it, call it back.
  void meddle() {
    const Known job = recent_[dice_.below(recent_.size())];
    switch (dice_.below(5)) {
      case 0: look_up(job); break;
      case 1: cancel(job); break;
      case 2: wait_for(job); break;
      default: {
        const auto moved =
            producer_.reprioritize(job.id, static_cast<std::int64_t>(dice_.below(6)));
        if (!moved.ok()) tolerate("reprioritize", moved.error(), job);
      }
    }
  }

  void look_up(const Known& job) {
    const auto info = producer_.get(job.id);
    if (!info.ok()) return tolerate("get", info.error(), job);
    if (info->id != job.id || key_of(info.value()) != job.key)
      lane_.accuse(Offence::kCorruptPayload, job.key, "get() gave another job, or a torn one");
  }

  /// Seldom for long, for others are to be met.
  void wait_for(const Known& job) {
    const std::chrono::milliseconds timeout(dice_.chance(0.02) ? dice_.between(1, 50) : 0);
    const auto info = producer_.wait(job.id, timeout);
    if (!info.ok() && info.code() != Code::kTimeout) return tolerate("wait", info.error(), job);
    if (info.ok() && (info->id != job.id || !is_terminal(info->state)))
      lane_.accuse(Offence::kUnexpectedAnswer, job.key,
                   "wait() gave another job, or one that has not finished");
  }

  void cancel(const Known& job) {
    lane_.ledger.mark(job.key, kCancelAttempted);
    const auto answer = producer_.cancel(job.id);
    if (!answer.ok()) return tolerate("cancel", answer.error(), job);
    if (answer->state != State::kCancelled) return;
    lane_.ledger.mark(job.key, kCancelReturned);
    lane_.book().cancelled.fetch_add(1);
  }

  void activate(const Known& job) {
    if (dice_.chance(0.1))  // it has no time that it waits for
      if (const Status answer = producer_.promote(job.id); answer.code() != Code::kWrongState)
        tolerate(
            "promote",
            answer.ok() ? Error{Code::kInternal, "a pending job was promoted"} : answer.error(),
            job);
    const Status answer = producer_.activate(job.id);
    // A process that drains may have been faster.
    if (!answer.ok()) tolerate("activate", answer.error(), job);
  }

  /// Another policy of a queue that has one, another strategy of the pool, or a limit on a queue
  /// for a moment.
  void change_policy() {
    const std::string& queue = policy_queues()[dice_.below(policy_queues().size())];
    switch (dice_.below(6)) {
      case 5: return direct_worker();
      case 0: return set_queue(queue, storm_policy(queue, dice_));
      case 4: return come_and_go();
      case 1: return set_pool(kStormPool, storm_pool(dice_));
      case 2: {
        if (dice_.chance(0.5)) return set_pool(kPassingPool, passing_pool(dice_));
        const Status removed = admin_->remove_pool(kPassingPool);
        if (!removed.ok() && removed.code() != Code::kNotFound)
          unexpected("remove_pool", removed.error(), {});
        return;
      }
      default: {
        RateLimit limit;
        limit.concurrency = static_cast<std::uint32_t>(dice_.between(1, 8));
        const std::string name = "queue:" + queue;
        const Status set =
            dice_.chance(0.5) ? admin_->set_limit(name, limit) : admin_->clear_limit(name);
        if (!set.ok() && set.code() != Code::kSegmentFull && set.code() != Code::kNotFound)
          unexpected("set_limit", set.error(), {});
      }
    }
  }

  /// A worker of the storm that may be there: quiet for a moment, or forgotten.
  void direct_worker() {
    const std::string id = fmt::format("storm-{}", dice_.below(4));
    if (dice_.chance(0.1)) return accept_worker(admin_->remove_worker(id));
    accept_worker(admin_->direct_worker(id, WorkerDirective::kQuiet));
    lane_.step();
    accept_worker(admin_->direct_worker(id, WorkerDirective::kRunning));
  }
  void accept_worker(const Status& told) {
    // kTimeout: a stopped process is in the middle of the same.
    if (!told.ok() && told.code() != Code::kNotFound && told.code() != Code::kTimeout)
      unexpected("direct_worker", told.error(), {});
  }

  /// A queue without jobs, which others make and delete as well.
  void come_and_go() {
    if (dice_.chance(0.5)) return set_queue(std::string(kPassingQueue), {.max_depth = 7});
    const auto gone = admin_->delete_queue(
        kPassingQueue, dice_.chance(0.5) ? QueueDeletion::kReject : QueueDeletion::kDiscard);
    if (gone.ok() ? *gone != 0 : gone.code() != Code::kNotFound)
      unexpected("delete_queue", gone.ok() ? Error{Code::kInternal, "it had jobs"} : gone.error(),
                 {});
  }

  /// Ageing, weights or the strict order; shards where no job has a rate of its own.
  void reorder() {
    const std::size_t which = dice_.below(queues_.size());
    QueueSettings settings;
    settings.aging.emplace().enabled = dice_.chance(0.5);
    settings.aging->interval_ms = 100;
    settings.level_weights.emplace();
    if (!settings.aging->enabled && dice_.chance(0.7))
      settings.level_weights = {{"0", 3}, {"2", 2}, {"*", 1}};
    if (which != 0) settings.shards = static_cast<std::uint32_t>(dice_.between(1, 4));
    const Status set = admin_->set_queue(queues_[which], settings);
    // Another may be about to set the other order.
    if (!set.ok() && set.code() != Code::kInvalid) unexpected("set_queue", set.error(), {});
  }

  /// What holds for all queues, or types, that have nothing of their own.
  void set_defaults() {
    const std::string_view type = dice_.chance(0.5) ? "storm.one" : "storm.two";
    std::optional<std::int64_t> priority;
    if (dice_.chance(0.7)) priority = static_cast<std::int64_t>(dice_.below(5));
    if (const Status set = admin_->set_default_priority(type, priority); !set.ok())
      unexpected("set_default_priority", set.error(), {});
    AgingSettings aging;
    aging.enabled = dice_.chance(0.5);
    aging.interval_ms = 100;
    // Not while a queue that follows it goes by weights.
    const Status set = admin_->set_default_aging(aging);
    if (!set.ok() && set.code() != Code::kInvalid) unexpected("set_default_aging", set.error(), {});
  }

  /// While all are at work, and while a process may be dead.
  void mend() {
    const auto done = dice_.chance(0.5) ? admin_->mend() : admin_->repair();
    if (!done.ok()) unexpected("mend", done.error(), {});
  }

  /// Pauses a queue for a moment, moves the bound of the bounded one, or changes the order in one.
  void administer() {
    if (dice_.chance(0.1)) return mend();
    if (dice_.chance(0.1)) return set_defaults();
    if (plan_.policies && dice_.chance(0.5)) return change_policy();
    if (dice_.chance(0.4)) return reorder();
    if (dice_.chance(0.5)) {
      set_queue(queues_[dice_.below(queues_.size())],
                {.max_depth = {}, .max_size_bytes = {}, .paused = true});
      nap_us(dice_.between(100, 5000));
      settle_queues();
    } else {
      set_queue(storm_queues().back(),
                {.max_depth = dice_.between(50, 600), .max_size_bytes = {}, .paused = {}});
    }
  }

  void settle_queues() {
    for (const std::string& queue : queues_)
      set_queue(queue, {.max_depth = {}, .max_size_bytes = {}, .paused = false});
    for (const RegisteredWorker& worker :
         Observer::attach(admin_->segment()).value().registered_workers())
      accept_worker(admin_->direct_worker(worker.id, WorkerDirective::kRunning));
  }

  void set_pool(std::string_view name, const PoolSettings& settings) {
    const auto set = admin_->set_pool(name, settings);
    // The passing one may find no key for its limit.
    if (!set.ok() && (name != kPassingPool || set.code() != Code::kSegmentFull))
      unexpected("set_pool", set.error(), {});
  }

  void set_queue(const std::string& queue, const QueueSettings& settings) {
    if (const Status set = admin_->set_queue(queue, settings); !set.ok())
      unexpected("set_queue", set.error(), {});
  }

  void tolerate(std::string_view what, const Error& error, const Known& job) {
    if (error.code == Code::kNotFound || error.code == Code::kWrongState) return;
    // of all levels, when a job moves to a new one
    if (error.code == Code::kSegmentFull && plan_.tight) return;
    unexpected(what, error, job.key);
  }

  void unexpected(std::string_view what, const Error& error, PayloadKey key) {
    lane_.accuse(Offence::kUnexpectedAnswer, key,
                 fmt::format("{}: {} ({})", what, error.message, code_name(error.code)));
  }

  Lane& lane_;
  const OjsPlan& plan_;
  Dice dice_;
  Producer producer_;
  const std::vector<std::string> queues_ = queues_of(plan_);
  std::optional<Admin> admin_;
  std::optional<Import> import_;
  std::deque<Known> recent_;
  std::optional<Proxy> proxy_;
  std::vector<Waiting> waiting_;  // goes before the producer and the proxy
};

}  // namespace

void produce_jobs(Lane& lane, const OjsPlan& plan) {
  auto producer = attach_patiently<Producer>(lane, [&] { return Producer::attach(plan.name); });
  if (producer) ProducerLane(lane, plan, std::move(*producer)).run();
}

}  // namespace ojs_shm::test
