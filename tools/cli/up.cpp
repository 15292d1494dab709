// SPDX-License-Identifier: Apache-2.0
//
// `ojs-shm up`: a broker and a gateway, which live and end together.
#include <ojs_shm/observer.hpp>

#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <toml++/toml.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tools/cli/child.hpp"
#include "tools/cli/command.hpp"
#include "tools/shell/exit_code.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/signals.hpp"
#include "tools/shell/target.hpp"

namespace ojs_shm::cli {
namespace {

struct UpOptions {
  std::string listen = "127.0.0.1:8080", token_file, tls_certificate, tls_key, threads,
              max_connections, max_streams, max_body, request_timeout, idle_timeout, write_timeout;
  bool test_hooks = false, open = false, no_events = false;
  CLI::App* command = nullptr;
};

// Flags of the broker that say how large the segment is to be.
constexpr std::string_view kSizing[] = {"--size",        "--slots",    "--max-queues", "--handles",
                                        "--max-tenants", "--max-body", "--max-waiting"};

/// The file behind --config among the broker's words; empty when there is none.
std::string config_in(const std::vector<std::string>& words) {
  constexpr std::string_view kFlag = "--config";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kFlag && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with("--config=")) return words[i].substr(kFlag.size() + 1);
  }
  return {};
}

/// The segment that the broker would serve by itself, which the gateway must serve as well: of its
/// file, unless a flag says otherwise. What is wrong with the file is for the broker to say.
SegmentName segment_of(const Request& request, const UpOptions& options) {
  SegmentName where = request.where;
  const std::string config = config_in(options.command->remaining());
  if (config.empty()) return where;
  toml::table file;
  try {
    file = toml::parse_file(config);
  } catch (const toml::parse_error&) {
    return where;
  }
  const auto given = [&options](const char* flag) {
    return options.command->get_option(flag)->count() != 0 ||
           options.command->get_parent()->get_option(flag)->count() != 0;
  };
  if (!given("--name")) where.name = file["name"].value_or(where.name);
  if (!given("--dir")) where.dir = file["dir"].value_or(where.dir);
  return where;
}

std::vector<std::string> broker_words(const SegmentName& where, const UpOptions& options) {
  std::vector<std::string> words = {program_beside("ojs-shm-broker"), "--name", where.name, "--dir",
                                    where.dir};
  const std::vector<std::string> given = options.command->remaining();
  words.insert(words.end(), given.begin(), given.end());
  const auto has = [&given](std::string_view flag) {
    return std::ranges::any_of(
        given, [&](std::string_view word) { return word.substr(0, word.find('=')) == flag; });
  };
  if (has("--config")) return words;
  // Clients over HTTP name queues as they like, and none is ever given back. So many, and 100,000
  // small jobs, fit into the /dev/shm of a container.
  if (!has("--max-queues")) words.insert(words.end(), {"--max-queues", "256"});
  if (!std::ranges::any_of(kSizing, has)) words.insert(words.end(), {"--size", "64M"});
  return words;
}

std::vector<std::string> gateway_words(const SegmentName& where, const UpOptions& options) {
  std::vector<std::string> words = {program_beside("ojs-shm-gateway"),
                                    "--name",
                                    where.name,
                                    "--dir",
                                    where.dir,
                                    "--listen",
                                    options.listen};
  const auto add = [&](const char* flag, const std::string& value) {
    if (value.empty()) return;
    words.emplace_back(flag);
    words.push_back(value);
  };
  add("--token-file", options.token_file);
  add("--tls-certificate", options.tls_certificate);
  add("--tls-key", options.tls_key);
  add("--threads", options.threads);
  add("--max-connections", options.max_connections);
  add("--max-streams", options.max_streams);
  add("--max-body", options.max_body);
  add("--request-timeout", options.request_timeout);
  add("--idle-timeout", options.idle_timeout);
  add("--write-timeout", options.write_timeout);
  if (options.test_hooks) words.emplace_back("--test-hooks");
  if (options.open) words.emplace_back("--open");
  if (options.no_events) words.emplace_back("--no-events");
  return words;
}

/// One that did not come up has said why; its code is ours.
int gave_up(Child& child) {
  const int code = child.wait();
  if (code == 127)
    shell::say("ojs-shm up: {} was not found beside ojs-shm or in PATH\n", child.name());
  return code == 0 || code > shell::kExitPermission ? shell::kExitFailed : code;
}

/// Why the child has to be killed: a second signal came, or it still runs after twice the time that
/// a gateway has for its last replies. Empty: it has ended.
std::string_view why_kill(Child& child) {
  constexpr std::chrono::seconds kPatience{20};
  constexpr timespec kGlance{0, 10'000'000};
  sigset_t hurry;
  ::sigemptyset(&hurry);
  ::sigaddset(&hurry, SIGTERM);
  ::sigaddset(&hurry, SIGINT);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!child.ended()) {
    if (::sigtimedwait(&hurry, nullptr, &kGlance) > 0) return "a second signal came";
    if (std::chrono::steady_clock::now() > until) return "it does not end";
  }
  return {};
}

/// The gateway first: it answers what has begun while the broker is still there. One that does not
/// end is killed, which costs no job.
void stop(Child& gateway, Child& broker) {
  for (Child* child : {&gateway, &broker}) {
    child->send(SIGTERM);
    const std::string_view why = why_kill(*child);
    if (why.empty()) continue;
    shell::say("ojs-shm up: {} is killed: {}\n", child->name(), why);
    child->send(SIGKILL);
    child->wait();
  }
}

/// Until a signal ends it, or one of the two dies. The logs of both name this program as the sender
/// of what it hands on; its own line names the sender.
int stay(const sigset_t& signals, Child& gateway, Child& broker) {
  for (;;) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals, &info);
    if (signal < 0) continue;
    const std::string origin = shell::signal_origin(signal, info.si_code, info.si_pid);
    if (signal == SIGHUP) {
      shell::say("ojs-shm up: {}: broker and gateway read their files again\n", origin);
      broker.send(SIGHUP);
      gateway.send(SIGHUP);
    } else if (signal != SIGCHLD) {
      shell::say("ojs-shm up: {}: stopping\n", origin);
      stop(gateway, broker);
      return shell::kExitOk;
    } else {
      const bool gateway_ended = gateway.ended(), broker_ended = broker.ended();
      if (!gateway_ended && !broker_ended) continue;
      shell::say("ojs-shm up: {} ended with {}; stopping the other\n",
                 (gateway_ended ? gateway : broker).name(),
                 (gateway_ended ? gateway : broker).wait());
      stop(gateway, broker);
      return shell::kExitFailed;
    }
  }
}

/// Until the broker supervises the segment, so that the gateway finds it healthy from the beginning:
/// a broker says READY before it takes the supervisor's seat. Not for ever: a process that stands
/// in for the broker may be stopped, and all else is done without it.
void await_supervisor(const SegmentName& where, Child& broker) {
  constexpr std::chrono::seconds kPatience{5};
  constexpr std::chrono::milliseconds kGlance{10};
  const auto observer = Observer::attach(where);
  const auto supervised = [&] {
    const SegmentInfo info = observer.value().segment_info();
    return std::ranges::any_of(info.processes, [](const ProcessInfo& each) {
      return each.alive && each.broker && each.supervisor;
    });
  };
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (observer && !supervised() && !broker.ended() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kGlance);
}

int up(const Request& request, const UpOptions& options) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int each : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::sigaddset(&signals, each);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);

  const SegmentName where = segment_of(request, options);
  Child broker("ojs-shm-broker", broker_words(where, options));
  if (!broker.first_line().starts_with("READY ")) return gave_up(broker);
  await_supervisor(where, broker);
  Child gateway("ojs-shm-gateway", gateway_words(where, options));
  const std::string ready = gateway.first_line();
  if (!ready.starts_with("READY ")) {
    const int code = gave_up(gateway);
    stop(gateway, broker);
    return code;
  }
  fmt::print("{}\n", ready);
  if (const Status sent = shell::flush_output(); !sent)
    shell::say("ojs-shm up: READY could not be written: {}\n", sent.error().message);
  return stay(signals, gateway, broker);
}

}  // namespace

void add_up_command(CLI::App& app, Request& request) {
  auto [command, options] = add_command<UpOptions>(
      app, request, "up", "Start a broker and a gateway that serves its segment over HTTP", &up);
  options->command = command;
  command->fallthrough(false);  // what is unknown here is the broker's
  command->allow_extras();
  shell::add_target_options(*command, request.where);
  command
      ->add_option("--listen", options->listen,
                   "Where the gateway listens; port 0 takes a free one [127.0.0.1:8080]")
      ->type_name("HOST:PORT|unix:PATH");
  command->add_option("--token-file", options->token_file, "Let in only requests with a token of F")
      ->type_name("F");
  command
      ->add_option("--tls-certificate", options->tls_certificate,
                   "Serve over TLS (https) with the certificate of F")
      ->type_name("F");
  command->add_option("--tls-key", options->tls_key, "The certificate's private key")
      ->type_name("F");
  command->add_flag("--open", options->open, "Let everyone in, also from other machines");
  command->add_option("--threads", options->threads, "Threads of the gateway")->type_name("N");
  command->add_option("--max-connections", options->max_connections, "Connections of the gateway")
      ->type_name("N");
  command
      ->add_option("--max-streams", options->max_streams,
                   "Event streams and WebSockets of one client at once")
      ->type_name("N");
  command->add_option("--max-body", options->max_body, "Longest body of a request")
      ->type_name("BYTES");
  command
      ->add_option("--request-timeout", options->request_timeout,
                   "From a request's first byte to its last")
      ->type_name("DUR");
  command
      ->add_option("--idle-timeout", options->idle_timeout,
                   "How long a connection may wait for its next request")
      ->type_name("DUR");
  command
      ->add_option("--write-timeout", options->write_timeout,
                   "For a client to take a reply or what a stream sends")
      ->type_name("DUR");
  command->add_flag("--no-events", options->no_events, "Leave the segment's events as they are");
  command->add_flag("--test-hooks", options->test_hooks, "For tests of clients");
  set_footer(
      *command,
      "\nAll other flags are the broker's: `ojs-shm-broker --help` has them; --max-body is the "
      "gateway's. Without --config the\nbroker gets --max-queues 256 unless it is given, and "
      "--size 64M unless a flag says how large the segment is to be.\n`name` and `dir` of its "
      "--config hold for both, unless a flag says otherwise. Prints READY URL name=N when\n"
      "requests are accepted; logs of both go to stderr. Ctrl-C stops both, a second one at once, "
      "and unfinished jobs are\nkept. When one of the two dies, the other is stopped, and the exit "
      "status is 1. A name or port in use: 3.\n"
      "\nEXAMPLE\n  ojs-shm up --name mail --size 64M --listen 127.0.0.1:8080\n");
}

}  // namespace ojs_shm::cli
