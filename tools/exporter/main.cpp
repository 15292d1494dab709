// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <spdlog/fmt/fmt.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "tools/exporter/collect.hpp"
#include "tools/exporter/server.hpp"
#include "tools/shell/meant_flag.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/service.hpp"
#include "tools/shell/target.hpp"

namespace {

using namespace ojs_shm;

/// Without this a misspelt directory looks like an empty one.
void check_directory(const std::string& dir) {
  DIR* stream = ::opendir(dir.c_str());
  if (stream == nullptr)
    shell::refuse(errno == EACCES ? Code::kPermission : Code::kCannotAttach,
                  fmt::format("{}: {}", dir, std::strerror(errno)));
  ::closedir(stream);
}

int run(int argc, char** argv) {
  CLI::App app(
      "Serves the numbers of one segment, or of all segments of a directory, for Prometheus. Maps "
      "them read-only\n"
      "at each request, so segments may come and go. Prints READY URL on stdout when requests are "
      "accepted.",
      "ojs-shm-exporter");
  app.set_version_flag("-V,--version", shell::version_text("ojs-shm-exporter"),
                       "Print the version and the segment format");
  app.footer(
      "\nGET /metrics answers in Prometheus' text format, or in OpenMetrics when the Accept header "
      "prefers it.\n"
      "SIGTERM, SIGINT and SIGHUP end the program. Who may reach the address may read the numbers "
      "and the names of\n"
      "queues, tenants and limits: behind a loopback address that is this machine.\n\n" +
      shell::exit_code_help() +
      "\nEXAMPLE\n  ojs-shm-exporter --listen 127.0.0.1:9464 &\n"
      "  curl http://127.0.0.1:9464/metrics\n");
  exporter::Scope scope;
  auto* name = shell::add_target_options(app, scope.where);
  name->description("Only this segment [OJS_SHM_NAME, else all of the directory]");
  std::string listen = "127.0.0.1:9464";
  app.add_option("--listen", listen, "Where to listen; port 0 takes a free one [127.0.0.1:9464]")
      ->type_name("HOST:PORT");
  metrics::add_bounds(app, scope.options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);
    shell::say("ojs-shm-exporter: {}{}; see --help\n", problem.what(), shell::meant_flag(app));
    return shell::kExitUsage;
  }

  const char* from_environment = std::getenv("OJS_SHM_NAME");
  scope.all = name->count() == 0 && (from_environment == nullptr || *from_environment == '\0');
  const exporter::Address address = exporter::parse_address(listen);
  check_directory(scope.where.dir);
  exporter::serve(
      address, [&] { return exporter::collect(scope); },
      [](const std::string& url) {
        fmt::print("READY {}\n", url);
        if (const Status sent = shell::flush_output(); !sent)
          shell::say("ojs-shm-exporter: READY could not be written: {}\n", sent.error().message);
      });
  return shell::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  return shell::run_service("ojs-shm-exporter", [&] { return run(argc, argv); });
}
