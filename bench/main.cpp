// SPDX-License-Identifier: Apache-2.0
//
// ojs_shm_bench: every benchmark once, in the order of the topologies. report.py runs it again and
// again and compares.
#include <benchmark/benchmark.h>
#include <sys/utsname.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "bench/measure.hpp"
#include "bench/stage.hpp"
#include "bench/topologies.hpp"

namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string build() {
  std::string text = OJS_SHM_BUILD_TYPE;
#if !defined(__OPTIMIZE__)
  text += ", not optimized";
#endif
#if defined(OJS_SHM_SANITIZED)
  text += ", sanitized";
#endif
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ojs_shm::bench;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      effort = 0.02;
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  argv[argc] = nullptr;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;

  utsname kernel{};
  ::uname(&kernel);
  benchmark::AddCustomContext("processor", processor());
  benchmark::AddCustomContext(
      "kernel", std::string(kernel.sysname) + " " + kernel.release + " " + kernel.machine);
  benchmark::AddCustomContext("compiler", __VERSION__);
  benchmark::AddCustomContext("build", build());
  benchmark::AddCustomContext(
      "cores", std::to_string(core_number(0)) + " and " + std::to_string(core_number(1)));
  benchmark::AddCustomContext("two_cores", two_cores_available() ? "yes" : "no");
  benchmark::AddCustomContext("time_stamps",
                              counter_is_the_clock() ? "processor's counter" : "steady clock");

  add_limits();
  add_one_to_one();
  add_one_way_latency();
  add_one_thread();
  add_levels();
  add_depth();
  add_two_and_two();
  add_orders();
  add_pools();
  add_fairness();
  add_observing();
  add_sampling();
  add_workflows();
  add_unique();
  add_http();
  add_memory();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
