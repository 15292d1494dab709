// SPDX-License-Identifier: Apache-2.0
#include "bench/measure.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

void add_limits() {
  // The stage bounces the line by itself before and after every run with two parts; here that is
  // the whole run.
  add_benchmark("limits/line_round_trip", [](benchmark::State& state) {
    Stage stage(Cast::kProcesses);
    for (const unsigned core : {0U, 1U}) {
      stage.add(core, [](Stage::Part& part) {
        part.begin();
        stay_busy_ns(1000);
        part.end();
      });
    }
    time_stage(state, stage, 1, Cores::kLeftAlone);
  });
}

}  // namespace ojs_shm::bench
