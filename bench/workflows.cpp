// SPDX-License-Identifier: Apache-2.0
//
// What a chain costs beside as many plain jobs, in one thread: a lap enqueues 1,000 jobs and works
// them off, or creates two chains of 500 steps and works those off. Laps take turns; the figure is
// the median of the ratios of neighbours. Specs are made before.
#include <algorithm>
#include <vector>

#include "bench/one_thread.hpp"
#include "bench/peers/ojs_shm.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

constexpr int kPairs = 31;
constexpr std::uint32_t kChains = 2, kSteps = 500, kJobs = kChains * kSteps;

double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

class Laps {
 public:
  explicit Laps(OjsShm& peer)
      : producer_(value_of(Producer::attach(peer.attached()), "attach")),
        worker_(value_of(Worker::attach(peer.attached(), {}), "attach")) {
    job_.type = "bench.job";
    job_.args = {body_.bytes, sizeof body_};
    chain_.kind = WorkflowKind::kChain;
    for (std::uint32_t i = 0; i < kSteps; ++i) chain_.steps.emplace_back().job = job_;
  }

  /// Of each job, ns: its creation, and all of its life.
  struct Took {
    double made, all;
  };
  Took plain() {
    return lap([this] {
      for (std::uint32_t i = 0; i < kJobs; ++i)
        if (const auto id = producer_.enqueue(job_); !id) throw_error("enqueue", id.error());
    });
  }
  Took chains() {
    return lap([this] {
      for (std::uint32_t i = 0; i < kChains; ++i)
        if (const auto id = producer_.create_workflow(chain_); !id)
          throw_error("create_workflow", id.error());
    });
  }

 private:
  template <class Make>
  Took lap(const Make& make) {
    const std::uint64_t begun = ticks();
    make();
    const std::uint64_t made = ticks();
    std::uint32_t done = 0;
    for (Job job; worker_.try_fetch(job); ++done)
      if (const Status acked = worker_.ack(job); !acked) throw_error("ack", acked.error());
    if (done != kJobs) throw std::runtime_error("there are not as many jobs as there should be");
    return {ns_between(begun, made) / kJobs, ns_between(begun, ticks()) / kJobs};
  }

  Producer producer_;
  Worker worker_;
  Body body_ = blank_body();
  JobSpec job_;
  WorkflowSpec chain_;
};

void chain(benchmark::State& state) {
  OjsShm peer{Plan{}};
  std::vector<double> ratios, plain_made, plain_all, chain_made, chain_all;
  Stage stage(Cast::kThreads);
  stage.add(0, [&](Stage::Part& part) {
    Laps laps(peer);
    laps.plain(), laps.chains();
    part.begin();
    for (int pair = 0; pair < kPairs; ++pair) {
      Laps::Took without{};
      if (pair % 2 == 0) without = laps.plain();
      const Laps::Took with = laps.chains();
      if (pair % 2 != 0) without = laps.plain();
      ratios.push_back(with.all / without.all);
      plain_made.push_back(without.made), plain_all.push_back(without.all);
      chain_made.push_back(with.made), chain_all.push_back(with.all);
    }
    part.end();
  });
  time_stage(state, stage, std::uint64_t{2} * kPairs * kJobs, cores_of<OjsShm>());
  if (ratios.empty()) return;
  state.counters["chain_ratio"] = median(ratios);
  state.counters["plain_ns"] = median(plain_all);
  state.counters["chain_ns"] = median(chain_all);
  state.counters["plain_enqueue_ns"] = median(plain_made);
  state.counters["chain_create_ns"] = median(chain_made);
}

}  // namespace

void add_workflows() { add_benchmark("workflow_chain/ojs_shm", chain); }

}  // namespace ojs_shm::bench
