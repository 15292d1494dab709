// SPDX-License-Identifier: Apache-2.0
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <exception>
#include <string>

#include <ojs_shm/admin.hpp>

#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/serving/server.hpp"
#include "tools/shell/colour.hpp"
#include "tools/shell/meant_flag.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/service.hpp"
#include "tools/shell/signals.hpp"
#include "tools/shell/target.hpp"

namespace {

using namespace ojs_shm;

void start_logging() {
  const auto colours =
      shell::has_colours(STDERR_FILENO) ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto logger = spdlog::stderr_color_mt("ojs-shm-gateway", colours);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %n[%P] %^%l%$ %v");
  spdlog::set_default_logger(std::move(logger));
}

/// A connection is a descriptor; most systems let a program have as many as it asks for.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::chrono::milliseconds read_timeout(std::string_view flag, const std::string& text) {
  constexpr std::uint64_t kLongest = 86'400'000;
  const std::uint64_t ms = shell::must(shell::parse_duration_ms(text));
  if (ms == 0 || ms > kLongest)
    shell::refuse(Code::kInvalid, fmt::format("{}: {} is not from 1ms to 24h", flag, text));
  return std::chrono::milliseconds(ms);
}

void serve(const gateway::Options& options) {
  const gateway::Address address = gateway::parse_address(options.listen);
  gateway::Certificate certificate(options.tls_certificate, options.tls_key);
  if (certificate.given() && address.is_unix())
    shell::refuse(Code::kInvalid,
                  "a Unix socket is served without TLS: leave out --tls-certificate and --tls-key, "
                  "or give --listen HOST:PORT");
  const shell::SignalDescriptor signals{SIGTERM, SIGINT, SIGHUP};
  gateway::Hall hall(options, shell::must(Segment::attach(options.where)));
  if (!options.token_file.empty()) hall.tokens().read(options.token_file);
  if (!options.no_events) {
    Admin admin = shell::must(Admin::attach(hall.segment()));
    shell::must(admin.set_events(true));
  }
  gateway::Server server(hall, certificate);
  if (options.test_hooks) spdlog::warn("--test-hooks: clients may empty the segment");
  server.serve(address, signals, [&](const std::string& url) {
    spdlog::info("segment {} is served at {}", options.where.name, url);
    fmt::print("READY {} name={}\n", url, options.where.name);
    if (const Status sent = shell::flush_output(); !sent)
      spdlog::warn("READY could not be written: {}", sent.error().message);
  });
}

int run(int argc, char** argv) {
  CLI::App app(
      "Serves a segment to Open Job Spec clients over HTTP. Prints READY URL name=N on stdout when "
      "requests are\naccepted. The segment must exist: start a broker first, or use `ojs-shm up`.",
      "ojs-shm-gateway");
  app.set_version_flag("-V,--version", shell::version_text("ojs-shm-gateway"),
                       "Print the version and the segment format");
  app.footer(
      "\nSIGTERM and SIGINT end the program: what has begun is answered first. SIGHUP reads the "
      "certificate and the tokens\nagain. Several gateways may serve one segment.\n"
      "Beyond loopback a token is asked for. A line of the token file has a token of at least 16 "
      "characters and its\n"
      "scopes, joined by commas: read, write, admin. docs/gateway.md describes the endpoints.\n\n" +
      shell::exit_code_help() +
      "\nEXAMPLE\n  ojs-shm-gateway --listen 127.0.0.1:8080 &\n"
      "  curl http://127.0.0.1:8080/ojs/v1/health\n");
  gateway::Options options;
  shell::add_target_options(app, options.where);
  app.add_option("--listen", options.listen,
                 "Where to listen; port 0 takes a free one [127.0.0.1:8080]")
      ->type_name("HOST:PORT|unix:PATH");
  app.add_option("--token-file", options.token_file,
                 "Let in only requests with a token of this file")
      ->type_name("F");
  app.add_option("--tls-certificate", options.tls_certificate,
                 "Serve over TLS (https) with the certificate of this PEM file")
      ->type_name("F");
  app.add_option("--tls-key", options.tls_key, "The certificate's private key, a PEM file")
      ->type_name("F");
  app.add_flag("--open", options.open, "Let everyone in, also from other machines");
  app.add_flag("--no-events", options.no_events, "Leave the segment's events as they are");
  app.add_option("--threads", options.threads,
                 "Threads that serve requests [as many as processors, at most 4]")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  app.add_option("--max-connections", options.max_connections,
                 "Connections at once; more are closed [8192]")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--max-streams", options.max_streams,
                 "Event streams and WebSockets at once of one client, told by its token, else by "
                 "its address [100]")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  std::string max_body = "1M";
  app.add_option("--max-body", max_body, "Longest body of a request [1M]")->type_name("BYTES");
  std::string request_timeout = "10s", idle_timeout = "75s", write_timeout = "30s";
  app.add_option("--request-timeout", request_timeout,
                 "From a request's first byte to its last; slower clients are dropped [10s]")
      ->type_name("DUR");
  app.add_option(
         "--write-timeout", write_timeout,
         "For a client to take a reply or what a stream sends; slower ones are dropped [30s]")
      ->type_name("DUR");
  app.add_option("--idle-timeout", idle_timeout,
                 "How long a connection may wait for its next request [75s]")
      ->type_name("DUR");
  app.add_flag("--test-hooks", options.test_hooks,
               "For tests of clients: /ojs/v1/test/reset, /ojs/v1/test/clock, directives in jobs");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);
    shell::say("ojs-shm-gateway: {}{}; see --help\n", problem.what(), shell::meant_flag(app));
    return shell::kExitUsage;
  }
  options.max_body_bytes = shell::must(shell::parse_bytes(max_body));
  options.request_time = read_timeout("--request-timeout", request_timeout);
  options.idle_time = read_timeout("--idle-timeout", idle_timeout);
  options.write_time = read_timeout("--write-timeout", write_timeout);
  start_logging();
  raise_descriptor_limit();
  serve(options);
  return shell::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  return shell::run_service("ojs-shm-gateway", [&] {
    try {
      return run(argc, argv);
    } catch (const gateway::Fault& fault) {
      shell::say("ojs-shm-gateway: {}\n", fault.message);
      return fault.status == 503 ? int{shell::kExitFull} : int{shell::kExitFailed};
    }
  });
}
