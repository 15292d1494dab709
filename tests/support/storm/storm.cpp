// SPDX-License-Identifier: Apache-2.0
#include "tests/support/storm/storm.hpp"

#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

namespace ojs_shm::test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

volatile std::sig_atomic_t interrupted_flag = 0;

void nap_ns(std::uint64_t ns) {
  const timespec pause{static_cast<time_t>(ns / 1'000'000'000U),
                       static_cast<long>(ns % 1'000'000'000U)};
  ::nanosleep(&pause, nullptr);
}

/// What this process holds for itself, without what it maps together with others. What a child was
/// born with is its parent's, and counts as well.
std::uint64_t private_memory_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib;
  }
  return 0;
}

}  // namespace

std::string_view role_name(Role role) {
  static constexpr std::string_view kNames[kRoles] = {"producer", "worker", "broker", "observer"};
  return kNames[static_cast<std::uint32_t>(role)];
}

bool Storm::interrupted() { return interrupted_flag != 0; }

Storm::Storm(Subject& subject, Ledger& ledger, const StormPlan& plan)
    : subject_(subject), ledger_(ledger), plan_(plan), dice_(plan.seed) {
  std::uint32_t lane = 0;
  if (subject.has_broker())
    members_.push_back({.role = Role::kBroker, .lane = lane++, .number = 0});
  for (std::uint32_t i = 0; i < plan.producers; ++i)
    members_.push_back({.role = Role::kProducer, .lane = lane++, .number = i});
  for (std::uint32_t i = 0; i < plan.workers; ++i)
    members_.push_back({.role = Role::kWorker, .lane = lane++, .number = i});
  for (std::uint32_t i = 0; i < plan.observers; ++i)
    members_.push_back({.role = Role::kObserver, .lane = lane++, .number = i});
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { interrupted_flag = 1; });
}

Storm::~Storm() { kill_all(); }

void Storm::start() {
  subject_.create();
  for (Member& member : members_) spawn(member);
}

void Storm::spawn(Member& member) {
  member.life = ledger_.begin_life(member.lane);
  member.wakes_ns = 0;
  ledger_.lane(member.lane).quit.store(0);
  for (auto& thread : ledger_.lane(member.lane).in_flight)
    for (auto& held : thread) {
      held.key_plus_one.store(0);
      for (auto& permit : held.permits) permit.store(0);
    }
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    // Whatever becomes of the storm itself, nothing of it stays behind.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);
    live(member);
  }
  member.pid = pid;
  member.last_step_ns = monotonic_ns();
  ledger_.life(member.life).pid.store(static_cast<std::uint32_t>(pid));
}

void Storm::live(const Member& member) {
  Lane lane{ledger_,     member.role,
            member.lane, member.number,
            member.life, Dice(plan_.seed ^ (std::uint64_t{member.life} << 20)).next()};
  const std::uint64_t born_with = private_memory_kib();
  int code = 0;
  try {
    if (plan_.at_birth != nullptr) plan_.at_birth(lane);
    switch (member.role) {
      case Role::kProducer: subject_.produce(lane); break;
      case Role::kWorker: subject_.work(lane); break;
      case Role::kBroker: subject_.broke(lane); break;
      case Role::kObserver: subject_.observe(lane); break;
    }
  } catch (const std::exception& failure) {
    lane.accuse(Offence::kDiedByItself, {}, failure.what());
    code = 1;
  }
  const std::uint64_t memory = std::max(private_memory_kib(), born_with) - born_with;
  if (memory > lane.book().private_kib.load()) lane.book().private_kib.store(memory);
  ::_exit(code);
}

void Storm::reap() {
  int status = 0;
  for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    Member* member = by_pid(pid);
    if (member == nullptr) continue;
    member->pid = 0;
    member->born_again_ns = monotonic_ns();
    // A seat that stays empty for a while, so that another process has to supervise.
    if (member->role == Role::kBroker && dice_.chance(0.5))
      member->born_again_ns += dice_.any_magnitude(1, 500) * kMs;
    judge_end(*member, status);
  }
}

void Storm::judge_end(const Member& member, int status) {
  const LaneBook& book = ledger_.lane(member.lane);
  if (WIFSIGNALED(status)) {
    const bool by_us =
        WTERMSIG(status) == SIGKILL && ledger_.life(member.life).kill_sent_ns.load() != 0;
    if (!by_us) {
      ledger_.accuse(Offence::kDiedByItself, member.life, {},
                     fmt::format("signal {}", WTERMSIG(status)));
      return;
    }
    ++outcome_.kills;
    ++outcome_.kills_of[static_cast<int>(member.role)];
    for (const auto& thread : book.in_flight) {
      for (const InFlight& held : thread) {
        if (held.key_plus_one.load() == 0) continue;
        const JobRecord* const job = ledger_.find(held.key());
        // it had failed it before
        if (job != nullptr && (job->marks.load() & kBuryAttempted) != 0) continue;
        if (!subject_.knows({held.id, 36}, ledger_.life(member.life).kill_sent_ns.load()))
          ledger_.accuse(Offence::kVanished, member.life, held.key(), held.id);
      }
    }
  } else if (WEXITSTATUS(status) != 0) {
    ledger_.accuse(Offence::kDiedByItself, member.life, {},
                   fmt::format("exit code {}", WEXITSTATUS(status)));
  }
}

void Storm::respawn() {
  const std::uint64_t now = monotonic_ns();
  const Phase phase = ledger_.phase();
  for (Member& member : members_) {
    const Lane lane{ledger_, member.role, member.lane, member.number, 0, 0};
    if (member.pid == 0 && member.born_again_ns <= now && phase < lane.last_phase()) spawn(member);
  }
}

void Storm::wake_sleepers(bool all) {
  const std::uint64_t now = monotonic_ns();
  for (Member& member : members_) {
    if (member.wakes_ns == 0 || (!all && member.wakes_ns > now)) continue;
    if (member.pid != 0) ::kill(member.pid, SIGCONT);
    member.wakes_ns = 0;
    member.last_step_ns = now;
  }
}

Storm::Member* Storm::pick(Role role) {
  std::vector<Member*> alive;
  for (Member& member : members_)
    if (member.role == role && member.pid != 0) alive.push_back(&member);
  return alive.empty() ? nullptr : alive[dice_.below(alive.size())];
}

Storm::Member* Storm::by_pid(pid_t pid) {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.pid == pid; });
  return found == members_.end() ? nullptr : &*found;
}

void Storm::kill_member(Member& member) {
  // First the note, then the deed: a process that is dispatched after the note may be the victim's
  // rightful heir.
  ledger_.life(member.life).kill_sent_ns.store(monotonic_ns());
  ::kill(member.pid, SIGKILL);
}

void Storm::ask_away(Member& member) {
  if (member.wakes_ns != 0) ::kill(member.pid, SIGCONT);
  member.wakes_ns = 0;
  ledger_.lane(member.lane).quit.store(1);
  if (member.role == Role::kBroker) ::kill(member.pid, SIGTERM);
}

void Storm::strike_supervisor() {
  const auto pid = subject_.supervisor();
  if (!pid) return;
  if (Member* member = by_pid(*pid); member != nullptr) {
    kill_member(*member);
    ++outcome_.supervisor_kills;
  }
}

void Storm::strike() {
  const std::uint64_t role_die = dice_.below(100);
  const Role role = role_die < 60 ? Role::kWorker : role_die < 90 ? Role::kProducer : Role::kBroker;
  // Seldom a process that looks, for a copy of the whole takes its time.
  Member* victim = plan_.observers != 0 && dice_.chance(0.01) ? pick(Role::kObserver) : pick(role);
  if (victim == nullptr) victim = pick(Role::kWorker);
  if (victim == nullptr) return;

  if (dice_.chance(plan_.stops)) {
    if (victim->wakes_ns != 0) return;
    victim->wakes_ns = monotonic_ns() + dice_.any_magnitude(1, 300) * kMs;
    ::kill(victim->pid, SIGSTOP);
    ++outcome_.stops;
  } else if (dice_.chance(plan_.farewells)) {
    ask_away(*victim);
    ++outcome_.farewells;
  } else {
    kill_member(*victim);
    // And now and then the one that is about to repair, and the one after that.
    if (dice_.chance(0.15)) {
      std::uint64_t at = monotonic_ns();
      for (std::uint64_t more = dice_.between(1, 3); more > 0; --more)
        supervisor_strikes_ns_.push_back(at += dice_.any_magnitude(20'000, 3'000'000));
    }
  }
}

void Storm::watch() {
  const std::uint64_t now = monotonic_ns();
  const std::uint64_t moves = ledger_.sum(&LaneBook::returned) + ledger_.sum(&LaneBook::completed);
  if (moves != last_moves_) {
    last_moves_ = moves;
    last_moved_ns_ = now;
  }
  const std::uint64_t silence_ms = (now - last_moved_ns_) / kMs;
  outcome_.longest_silence_ms = std::max(outcome_.longest_silence_ms, silence_ms);
  if (silence_ms > plan_.wedge_ms && !outcome_.wedged) {
    outcome_.wedged = true;
    ledger_.accuse(
        Offence::kWedged, 0, {},
        fmt::format("nothing moved for {} ms, after {} kills", silence_ms, outcome_.kills));
  }
  for (Member& member : members_) {
    if (member.role == Role::kBroker || member.pid == 0) continue;
    const std::uint64_t steps = ledger_.lane(member.lane).steps.load();
    if (steps != member.last_steps || member.wakes_ns != 0) {
      member.last_steps = steps;
      member.last_step_ns = now;
    } else if ((now - member.last_step_ns) / kMs > plan_.wedge_ms && !outcome_.wedged) {
      outcome_.wedged = true;
      ledger_.accuse(Offence::kWedged, member.life, {},
                     fmt::format("{} {} stands still (pid {})", role_name(member.role),
                                 member.number, member.pid));
    }
  }
  if (plan_.look_every_ms != 0 && (now - last_look_ns_) / kMs >= plan_.look_every_ms) {
    subject_.look(ledger_);
    last_look_ns_ = monotonic_ns();
  }
}

bool Storm::fulfilled() const {
  if (outcome_.wedged || interrupted()) return true;
  const bool time_is_up = (monotonic_ns() - began_ns_) / 1'000'000'000U >= plan_.seconds;
  if (plan_.kills == 0 && plan_.jobs == 0) return time_is_up;
  return time_is_up ||
         (outcome_.kills >= plan_.kills && ledger_.sum(&LaneBook::returned) >= plan_.jobs);
}

void Storm::rage() {
  began_ns_ = last_moved_ns_ = last_look_ns_ = monotonic_ns();
  std::uint64_t next_strike = began_ns_ + 20 * kMs;
  for (Member& member : members_) member.last_step_ns = began_ns_;
  while (!fulfilled()) {
    reap();
    respawn();
    wake_sleepers(false);
    const std::uint64_t now = monotonic_ns();
    if (now >= next_strike) {
      if (plan_.strikes) strike();
      next_strike =
          monotonic_ns() + dice_.any_magnitude(plan_.pause_us_low, plan_.pause_us_high) * 1000;
    }
    std::uint64_t next = next_strike;
    for (std::uint64_t& at : supervisor_strikes_ns_) {
      if (at <= now) {
        strike_supervisor();
        at = 0;
      } else {
        next = std::min(next, at);
      }
    }
    std::erase(supervisor_strikes_ns_, 0);
    if (now - last_watch_ns_ >= 20 * kMs) {
      watch();
      last_watch_ns_ = now;
    }
    const std::uint64_t later = monotonic_ns();
    if (next > later) nap_ns(std::min(next - later, kMs));
  }
  wake_sleepers(true);
  supervisor_strikes_ns_.clear();
  outcome_.raged_s += static_cast<double>(monotonic_ns() - began_ns_) / 1e9;
}

void Storm::print_members() const {
  for (const Member& member : members_) {
    fmt::print(stderr, "{} {}, pid {}, quit {}, {} steps\n", role_name(member.role), member.number,
               member.pid, ledger_.lane(member.lane).quit.load(),
               ledger_.lane(member.lane).steps.load());
    if (member.pid == 0) continue;
    const std::string script = fmt::format(
        "cd /proc/{0}/task 2>&1 && for t in *; do echo \" thread $t: $(cut -d' ' -f3 $t/stat) "
        "$(cat $t/wchan) $(cat $t/syscall)\"; done; "
        "! command -v gdb > /dev/null || gdb -p {0} -batch -ex 'thread apply all bt 14' 2>&1 | "
        "grep '^[T#]'",
        member.pid);
    std::fflush(nullptr);
    if (::system(("{ " + script + "; } >&2").c_str()) != 0) continue;
  }
}

/// Until all of this role are gone; those that do not go within a wedge's time are accused and
/// killed.
bool Storm::leave(Role role) {
  const std::uint64_t began = monotonic_ns();
  const auto left = [&] {
    return std::any_of(members_.begin(), members_.end(),
                       [&](const Member& m) { return m.role == role && m.pid != 0; });
  };
  while (left() && (monotonic_ns() - began) / kMs < plan_.wedge_ms) {
    reap();
    nap_ns(kMs);
  }
  if (!left()) return true;
  for (Member& member : members_) {
    if (member.role != role || member.pid == 0) continue;
    ledger_.accuse(Offence::kWedged, member.life, {},
                   fmt::format("did not leave when asked (pid {})", member.pid));
    kill_member(member);
    ::waitpid(member.pid, nullptr, 0);
    member.pid = 0;
  }
  return false;
}

bool Storm::drain() {
  const std::uint64_t began = monotonic_ns();
  ledger_.set_phase(Phase::kProducersStop);
  wake_sleepers(true);
  bool all_well = leave(Role::kProducer);
  std::uint64_t last_moves = 0, moved = monotonic_ns();
  while (!(outcome_.drained = subject_.drained(ledger_)) &&
         (monotonic_ns() - moved) / kMs < plan_.wedge_ms) {
    reap();
    respawn();
    const std::uint64_t moves = ledger_.sum(&LaneBook::dispatched);
    if (moves != last_moves) {
      last_moves = moves;
      moved = monotonic_ns();
    }
    nap_ns(5 * kMs);
  }
  if (!outcome_.drained) {
    print_members();
    ledger_.accuse(Offence::kWedged, 0, {},
                   "work was left, workers lived, and nothing was dispatched any more");
    all_well = false;
  }
  outcome_.drain_s = static_cast<double>(monotonic_ns() - began) / 1e9;
  return all_well;
}

void Storm::dismiss_workers() {
  ledger_.set_phase(Phase::kWorkersStop);
  leave(Role::kWorker);
  // What follows wants a process that supervises, and the last strikes may have hit the broker.
  const auto gone = [](const Member& member) {
    return member.role == Role::kBroker && member.pid == 0;
  };
  for (reap(); std::any_of(members_.begin(), members_.end(), gone); reap()) {
    respawn();
    nap_ns(kMs);
  }
}

void Storm::dismiss_all() {
  ledger_.set_phase(Phase::kEverybodyStops);
  for (Member& member : members_)
    if (member.role == Role::kBroker && member.pid != 0) ::kill(member.pid, SIGTERM);
  leave(Role::kBroker);
  leave(Role::kObserver);
}

void Storm::kill_all() {
  for (Member& member : members_) {
    if (member.pid == 0) continue;
    ::kill(member.pid, SIGKILL);
    ::waitpid(member.pid, nullptr, 0);
    member.pid = 0;
  }
}

void Storm::resume() {
  ledger_.begin_round();
  ledger_.set_phase(Phase::kRun);
  respawn();
}

}  // namespace ojs_shm::test
