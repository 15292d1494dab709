// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <map>
#include <system_error>
#include <utility>

#include "engine/supervision/supervisor.hpp"
#include "shm/parking.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/roles/attachment.hpp"
#include "worker_api/roles/cron_keeper.hpp"

// Which process supervises, and how it learns of deaths: by pidfds where the process can be seen
// from here, else by looking at its lock byte twenty times a second. Either is only a doorbell; the
// lock byte alone is the proof.

namespace ojs_shm::internal {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

/// A descriptor that becomes readable when the process of a record ends; none when it is in another
/// pid namespace.
Descriptor watch_process(Attachment& attachment, std::uint32_t process) {
  const shm::ProcessRecord& record = attachment.segment().process(process);
  if (record.namespace_id.load() != shm::pid_namespace()) return Descriptor();
  const auto pid = static_cast<pid_t>(record.pid.load());
  if (pid == ::getpid()) return Descriptor();
  Descriptor descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended{descriptor.get(), POLLIN, 0};
  // dead, but its byte is held: a forked child keeps it
  if (::poll(&ended, 1, 0) != 0) return Descriptor();
  // The pid may be another's by now; then the byte is free, and the caller looks at that.
  return attachment.locks().held(shm::kProcessByte + process) ? std::move(descriptor)
                                                              : Descriptor();
}

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

/// A thread that sleeps on the pidfds of all attached processes and rings the doorbell when one
/// ends. Where there is no thread to be had, as in a process that calls exec just then or is at its
/// limit, the table is looked at by the clock.
class DeathWatch {
 public:
  explicit DeathWatch(Attachment& attachment)
      : attachment_(attachment), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_.get() < 0) return;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {}
  }
  ~DeathWatch() {
    stop_.set();
    ::eventfd_write(wake_.get(), 1);
    if (thread_.joinable()) thread_.join();
  }
  /// Looks at the process table again. True when some process cannot be watched and must be looked
  /// at.
  bool refresh() {
    std::map<std::uint32_t, std::uint64_t> now;
    bool blind = !thread_.joinable();
    for (std::uint32_t i = 0; i < attachment_.segment().geometry().processes; ++i)
      if (i != attachment_.process() && attachment_.segment().process(i).live.load() != 0)
        now.emplace(i, attachment_.segment().process(i).epoch.load());
    const std::lock_guard lock(mutex_);
    if (now != known_) {
      watched_.clear();
      for (const auto& [process, epoch] : now)
        watched_.push_back(watch_process(attachment_, process));
      known_ = std::move(now);
      ::eventfd_write(wake_.get(), 1);
    }
    for (const Descriptor& descriptor : watched_) blind = blind || descriptor.get() < 0;
    return blind;
  }

 private:
  void run() {
    block_signals();
    while (!stop_.get()) {
      std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
      {
        const std::lock_guard lock(mutex_);
        for (const Descriptor& descriptor : watched_)
          if (descriptor.get() >= 0)
            polled.push_back({::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0), POLLIN, 0});
      }
      ::poll(polled.data(), polled.size(), -1);
      bool died = false;
      for (std::size_t i = 1; i < polled.size(); ++i) {
        died = died || polled[i].revents != 0;
        ::close(polled[i].fd);
      }
      eventfd_t count = 0;
      ::eventfd_read(wake_.get(), &count);
      if (!died) continue;
      {
        // the dead would wake us for ever: the next refresh begins anew
        const std::lock_guard lock(mutex_);
        watched_.clear();
        known_.clear();
      }
      attachment_.ring_doorbell();
    }
  }

  Attachment& attachment_;
  Descriptor wake_;
  std::mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> known_;
  std::vector<Descriptor> watched_;
  shm::LocalFlag stop_;
  std::thread thread_;
};

/// Repairs that other processes of the segment made, for the log: a process that needs what a dead
/// one holds does not wait for the supervisor.
class RepairsOfOthers {
 public:
  explicit RepairsOfOthers(const shm::Header& header) : seen_(header.last_repair_at_ms.load()) {}

  /// Empty when there is nothing new. Of several since the last look only the last is told.
  std::string news(const shm::Header& header) {
    const std::uint64_t at = header.last_repair_at_ms.load(), pids = header.last_repair.load();
    if (at == std::exchange(seen_, at) || pids >> 32 == static_cast<std::uint32_t>(::getpid()))
      return {};
    Deaths deaths;
    deaths.by = static_cast<std::uint32_t>(pids >> 32);
    deaths.pids = {static_cast<std::uint32_t>(pids)};
    deaths.mended = static_cast<std::uint32_t>(header.last_mended.load());
    return deaths.text();
  }

 private:
  std::uint64_t seen_;
};

}  // namespace

void Attachment::supervise(const std::function<bool()>& stop,
                           const std::function<void(std::string_view)>& log) {
  Result<std::uint32_t> lane = take_lane(true);
  while (!lane) {  // the living have them all
    pollfd wait{stop_fd_, POLLIN, 0};
    if (::poll(&wait, 1, 50) != 0 || stop() || forked()) return;
    lane = take_lane(true);
  }
  shm::Header& header = segment_.header();
  RepairsOfOthers repairs(header);  // before others see us in the seat, and count on what we tell
  header.supervisor.store(process_ + 1, shm::Point::kSeatTaken);
  {
    engine::Actor actor(store_, *lane);
    engine::Supervisor supervisor(actor, &forbids_retry);
    CronKeeper crons(actor);
    DeathWatch watch(*this);
    bool blind = true;
    for (;;) {
      // first: a caller that wants us to stop says so, and then rings
      const std::uint32_t rung = header.doorbell.load();
      if (stop() || forked()) break;
      // NO CRASH POINT: a hint; 0 only means that there is no need to ring
      header.sleeping_until_ms.store(0, shm::Point::kNone);
      if (Deaths deaths; repair_the_dead(&deaths) != 0) log(deaths.text());
      if (const std::string text = repairs.news(header); !text.empty()) log(text);
      blind = watch.refresh();
      engine::Supervisor::Report report;
      const std::uint64_t shortest = header.shortest_lease_ms.load();
      const std::uint64_t now = store_.now_ms();
      std::uint64_t next = supervisor.tick(now, report);
      next = std::min(next, crons.look(now));
      for (const engine::LostWorker& lost : report.lost_workers)
        log("worker " + lost.id + " was silent for " + std::to_string(lost.silent_ms / 1000) +
            " s: " + std::to_string(lost.jobs) + " of its jobs returned");
      if (report.leases_ended != 0) log("ended " + std::to_string(report.leases_ended) + " leases");
      if (next <= now) continue;
      if (blind) next = std::min(next, now + 50);
      header.sleeping_until_ms.exchange(next, shm::Point::kDoorbellRung);
      // Announced before we said that we sleep: it was not rung for.
      if (!actor.rings().peek(store_.header().timers_ring).empty() ||
          header.shortest_lease_ms.load_seq_cst() != shortest || crons.is_late())
        continue;
      shm::futex_wait(header.doorbell, rung, next - now);
    }
    actor.retire();
  }
  header.supervisor.store(0, shm::Point::kSeatLeft);
  give_lane(*lane);
}

bool Attachment::broker_lives() const { return locks_.held(shm::kBrokerSeat); }

/// Returns when it stands at its post and takes no signal any more. From there on, until it has to
/// supervise, it allocates nothing, so that a fork may come at any time, whatever the allocator
/// does about forks.
Status Attachment::start_keeper() {
  try {
    std::promise<void> at_its_post;
    const std::future<void> stands = at_its_post.get_future();
    keeper_ = std::thread([this, at_its_post = std::move(at_its_post)]() mutable {
      block_signals();
      at_its_post.set_value();
      keep();
    });
    stands.wait();
  } catch (const std::system_error& error) {
    return Error{Code::kInternal,
                 std::string("no thread to be had for the keeper: ") + error.what()}
        .about("thread");
  }
  return {};
}

void Attachment::keep() {
  for (std::uint64_t from = 0; !stopping_.get() && segment_.map_ahead(from);) {}
  while (!stopping_.get()) {
    if (!locks_.intact()) mark_lost();
    if (forked()) return;
    if (!broker_lives() && locks_.try_lock(shm::kSupervisorSeat)) {
      supervise([this] { return stopping_.get() || broker_lives(); }, [](std::string_view) {});
      locks_.unlock(shm::kSupervisorSeat);
      continue;
    }
    wait_for_vacancy();
  }
}

/// Sleeps until the supervisor may be gone.
void Attachment::wait_for_vacancy() {
  const bool broker = broker_lives();
  const std::uint32_t holder =
      broker ? segment_.header().broker.load() : segment_.header().supervisor.load();
  Descriptor descriptor = holder != 0 ? watch_process(*this, holder - 1) : Descriptor();
  pollfd polled[2] = {{stop_fd_, POLLIN, 0}, {descriptor.get(), POLLIN, 0}};
  ::poll(polled, descriptor.get() >= 0 ? 2 : 1, descriptor.get() >= 0 ? 1000 : 50);
}

}  // namespace ojs_shm::internal
