// SPDX-License-Identifier: Apache-2.0
#include "tests/support/storm/storm_command.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>

#include "tests/support/process.hpp"
#include "tests/support/storm/control_subjects.hpp"
#include "tests/support/storm/ojs_subject.hpp"
#include "tests/support/storm/report.hpp"
#include "tests/support/storm/storm.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::string_view kHelp = R"(usage: storm [options]
Kills, stops and restarts producers, workers, broker and supervisor at random, and audits what became of the jobs.
  --subject S     ojs (default), boost (Boost.Interprocess message_queue) or vyukov (a bare ring)
  --seed N        default: random, and printed
  --seconds N     how long it rages; with --kills or --jobs: at most (default 20)
  --kills N, --jobs N       it rages until both are reached; when the time is up before, it has failed
  --producers N, --workers N
  --dir D         where the segment lives (default: a directory of its own in /dev/shm)
  --tight         a small segment that is full all the time
  --everything    every operation: schedules, expiries, timeouts, dead letters, cancel, reprioritize, activate ...
  --policies      tenants, limits, unique jobs, a pool of workers, queues that wait or drop, imports; readers of events
                  and copies
  --no-stops      no SIGSTOP
  --calm          no strikes at all
  --look MS       audit that often while all work
  --wedge MS      so long without progress is a wedge (default 30000)
  --must-break    a control: fail when nothing broke
  --linger N      when it wedged, wait N seconds before killing what is left
)";

struct Command {
  StormPlan storm;
  OjsPlan ojs;
  std::string dir;
  std::string subject = "ojs";
  bool must_break = false;
  std::uint64_t linger_s = 0;
};

std::uint64_t number(std::string_view option, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument(fmt::format("{} wants a number, not '{}'", option, text));
  return value;
}

Command read_command(int argc, char** argv) {
  Command command;
  command.storm.seed = std::random_device{}();
  const auto into = [](std::uint64_t& word) {
    return [&word](std::string_view option, std::string_view text) { word = number(option, text); };
  };
  const auto into_small = [](std::uint32_t& word) {
    return [&word](std::string_view option, std::string_view text) {
      word = static_cast<std::uint32_t>(number(option, text));
    };
  };
  const std::map<std::string_view, std::function<void(std::string_view, std::string_view)>>
      with_value{
          {"--subject", [&](std::string_view, std::string_view text) { command.subject = text; }},
          {"--dir", [&](std::string_view, std::string_view text) { command.dir = text; }},
          {"--seed", into(command.storm.seed)},
          {"--seconds", into(command.storm.seconds)},
          {"--kills", into(command.storm.kills)},
          {"--jobs", into(command.storm.jobs)},
          {"--producers", into_small(command.storm.producers)},
          {"--workers", into_small(command.storm.workers)},
          {"--look", into(command.storm.look_every_ms)},
          {"--wedge", into(command.storm.wedge_ms)},
          {"--linger", into(command.linger_s)}};
  const std::map<std::string_view, std::function<void()>> alone{
      {"--tight", [&] { command.ojs.tight = true; }},
      {"--everything", [&] { command.ojs.everything = true; }},
      {"--policies", [&] { command.ojs.policies = true, command.storm.observers = 1; }},
      {"--calm", [&] { command.storm.strikes = false; }},
      {"--no-stops", [&] { command.storm.stops = 0; }},
      {"--must-break", [&] { command.must_break = true; }}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (const auto flag = alone.find(option); flag != alone.end()) {
      flag->second();
    } else if (const auto found = with_value.find(option);
               found != with_value.end() && i + 1 < argc) {
      found->second(option, argv[++i]);
    } else {
      throw std::invalid_argument(fmt::format("what is '{}'?", option));
    }
  }
  return command;
}

std::unique_ptr<Subject> make_subject(Command& command, const std::string& scratch) {
  const std::string name = fmt::format("storm-{}", ::getpid());
  if (command.subject == "boost") return boost_queue_subject(name);
  if (command.subject == "vyukov") return vyukov_ring_subject(name);
  if (command.subject != "ojs")
    throw std::invalid_argument(fmt::format("no subject '{}'", command.subject));
  OjsPlan& plan = command.ojs;
  plan.name = {"storm", command.dir.empty() ? scratch : command.dir};
  plan.options.size_bytes = plan.tight ? 12U << 20 : 192U << 20;
  plan.options.slots = plan.tight ? 4096 : 102'400;
  // a level of a queue is never given back, and these have many
  plan.options.max_queues = plan.policies ? 64 : 8;
  plan.options.retention_ms = plan.tight ? 1000 : 4000;
  plan.backlog = plan.tight ? 100'000 : 10'000;
  return std::make_unique<OjsSubject>(plan);
}

/// Leaves nothing behind, however the storm ends.
struct Removal {
  Subject& subject;
  ~Removal() { subject.remove(); }
};

int run(Command& command) {
  const ScratchDirectory scratch;
  const auto subject = make_subject(command, scratch.path());
  const Removal removal{*subject};
  const StormPlan& plan = command.storm;
  const std::uint64_t jobs = std::max<std::uint64_t>({1U << 20, plan.jobs, plan.seconds * 60'000});
  Ledger ledger({plan.producers, 1 + plan.producers + plan.workers + plan.observers, jobs});
  fmt::print("{}: seed {}\n", subject->name(), plan.seed);
  StormOutcome outcome;
  LedgerVerdict verdict;
  std::vector<std::string> remarks;
  {
    Storm storm(*subject, ledger, plan);
    storm.start();
    storm.rage();
    const bool settled = !storm.outcome().wedged && storm.drain();
    if (settled) storm.dismiss_workers();
    verdict = ledger.judge(subject->unfinished(ledger));
    if (settled) {
      subject->compare(ledger, verdict);
      subject->inspect(ledger);
    } else {
      subject->look(ledger);
      nap_us(command.linger_s * 1'000'000);
    }
    remarks = subject->remarks();
    if (settled) {
      storm.dismiss_all();
      subject->inspect_abandoned(ledger);
    }
    outcome = storm.outcome();
  }
  std::string text = storm_report(*subject, plan, outcome, verdict, ledger);
  for (const std::string& remark : remarks) text += "  " + remark + "\n";
  const std::uint64_t returned = ledger.sum(&LaneBook::returned);
  const bool reached = outcome.kills >= plan.kills && returned >= plan.jobs;
  const bool clean = ledger.offences() == 0;
  text += clean                ? "  nothing lost, nothing doubled, nothing leaked\n"
          : command.must_break ? "  broken, as it should be: the storm sees such things\n"
                               : fmt::format("  FAILED; again with --seed {}\n", plan.seed);
  if (clean && command.must_break)
    text += "  FAILED: the storm did not break what is known to break\n";
  if (!reached)
    text += fmt::format("  FAILED: {} kills of {} and {} jobs of {} when the time was up\n",
                        outcome.kills, plan.kills, returned, plan.jobs);
  fmt::print("{}", text);
  return reached && clean != command.must_break ? 0 : 1;
}

}  // namespace

int storm_command(int argc, char** argv, void (*at_birth)(Lane&)) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    fmt::print("{}", kHelp);
    return 0;
  }
  try {
    Command command = read_command(argc, argv);
    command.storm.at_birth = at_birth;
    return run(command);
  } catch (const std::invalid_argument& wrong) {
    fmt::print(stderr, "storm: {}\n{}", wrong.what(), kHelp);
    return 2;
  } catch (const std::exception& failure) {
    fmt::print(stderr, "storm: {}\n", failure.what());
    return 1;
  }
}

}  // namespace ojs_shm::test
