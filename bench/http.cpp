// SPDX-License-Identifier: Apache-2.0
//
// The gateway over loopback, beside Redis, beanstalkd and a bare Beast server: each server on one
// core, the same generator of load on the other. Every job has 64 bytes.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

#include "bench/dialogues.hpp"
#include "bench/measure.hpp"
#include "bench/peers/http_echo.hpp"
#include "bench/peers/ojs_shm.hpp"
#include "bench/peers/server_process.hpp"
#include "bench/topologies.hpp"

namespace ojs_shm::bench {

namespace {

constexpr unsigned kLoadCore = 0, kServerCore = 1;

/// Our own program, which lies beside this one.
std::string own_program(const char* name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

/// A program on a free port of loopback, which its last word names, and on the servers' core.
class OnLoopback {
 public:
  explicit OnLoopback(std::vector<std::string> words, const std::string& before_port = "")
      : server_(with(std::move(words), before_port + std::to_string(port_)), port_,
                core_number(kServerCore)) {}
  std::uint16_t port() const { return port_; }

 private:
  static std::vector<std::string> with(std::vector<std::string> words, std::string last) {
    words.push_back(std::move(last));
    return words;
  }
  std::uint16_t port_ = free_port();
  ServerProcess server_;
};

/// A broker, and a gateway of one thread.
class GatewayServer {
 public:
  std::uint16_t port() const { return server_.port(); }
  const Segment& segment() { return segment_.attached(); }
  static std::unique_ptr<Dialogue> dialogue(Steps steps) { return gateway_dialogue(steps); }

 private:
  OjsShm segment_{Plan{.waiting = 200'000}};
  OnLoopback server_{{own_program("ojs-shm-gateway"), "--name", segment_.name().name, "--dir",
                      segment_.name().dir, "--threads", "1", "--listen"},
                     "127.0.0.1:"};
};

class RedisOverTcp {
 public:
  std::uint16_t port() const { return server_.port(); }
  static std::unique_ptr<Dialogue> dialogue(Steps steps) { return redis_dialogue(steps); }

 private:
  TemporaryDirectory directory_;
  OnLoopback server_{{"redis-server", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                      "--dir", directory_.path().string(), "--port"}};
};

class BeanstalkdOverTcp {
 public:
  std::uint16_t port() const { return server_.port(); }
  static std::unique_ptr<Dialogue> dialogue(Steps steps) { return beanstalkd_dialogue(steps); }

 private:
  OnLoopback server_{{"beanstalkd", "-l", "127.0.0.1", "-p"}};
};

/// Answers with the bodies that the gateway is asked to enqueue.
class Echo {
 public:
  std::uint16_t port() const { return echo_.port(); }
  static std::unique_ptr<Dialogue> dialogue(Steps) { return gateway_dialogue(Steps::kEnqueue); }

 private:
  HttpEcho echo_{core_number(kServerCore)};
};

double quantile(std::vector<double>& of, double share) {
  if (of.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(of.size() - 1));
  std::nth_element(of.begin(), of.begin() + at, of.end());
  return of[static_cast<std::size_t>(at)];
}

/// Drives the server after a short warm-up; each answer stands for `jobs` jobs.
void measure(benchmark::State& state, std::uint16_t port, Dialogues dialogues,
             std::uint64_t requests, double jobs) {
  Stage stage(Cast::kThreads);
  std::vector<double> waits;
  stage.add(kLoadCore, [&](Stage::Part& part) {
    const std::uint64_t round = 3 * dialogues.size();  // whole lives
    drive(port, dialogues, std::min<std::uint64_t>(requests / 10, 3000) / round * round + round);
    part.begin();
    waits = drive(port, dialogues, requests / round * round + round).waits_us;
    part.end();
  });
  const double all = static_cast<double>(requests) * jobs;
  time_stage(state, stage, std::max<std::uint64_t>(static_cast<std::uint64_t>(all), 1),
             Cores::kLeftAlone);
  state.counters["p50_us"] = quantile(waits, 0.5);
  state.counters["p99_us"] = quantile(waits, 0.99);
}

template <class Server>
void add(const std::string& topology, const char* peer, unsigned connections, Steps steps,
         double full) {
  add_benchmark(topology + "/" + peer, [=](benchmark::State& state) {
    Server server;
    const double per_job = steps == Steps::kLife ? 3 : 1;
    measure(state, server.port(), several(connections, [&] { return Server::dialogue(steps); }),
            scaled(full), 1 / per_job);
  });
}

void batches(benchmark::State& state) {
  constexpr unsigned kJobs = 100;
  GatewayServer server;
  measure(state, server.port(), several(1, [] { return gateway_batches(kJobs); }), scaled(1000),
          kJobs);
}

/// What a client waits when the gateway is offered half of what it can do.
void half_load(benchmark::State& state) {
  constexpr unsigned kConnections = 16;
  GatewayServer server;
  Dialogues dialogues = several(kConnections, [] { return gateway_dialogue(Steps::kLife); });
  const std::uint64_t requests =
      std::uint64_t{scaled(30'000)} / (3 * kConnections) * 3 * kConnections;
  std::vector<double> waits;
  Stage stage(Cast::kThreads);
  stage.add(kLoadCore, [&](Stage::Part& part) {
    const double seconds = drive(server.port(), dialogues, requests).seconds;
    part.begin();
    waits = drive(server.port(), dialogues, requests, static_cast<double>(requests) / seconds / 2)
                .waits_us;
    part.end();
  });
  time_stage(state, stage, std::max<std::uint64_t>(requests / 3, 1), Cores::kLeftAlone);
  state.counters["p50_us"] = quantile(waits, 0.5);
  state.counters["p99_us"] = quantile(waits, 0.99);
}

/// Asks the gateway all it can do, from its own core, until it goes.
class Askers {
 public:
  explicit Askers(std::uint16_t port) : thread_([this, port] { ask(port); }) {}
  ~Askers() {
    over_ = true;
    thread_.join();
  }

 private:
  void ask(std::uint16_t port) {
    cpu_set_t server_core;
    CPU_ZERO(&server_core);
    CPU_SET(core_number(kServerCore), &server_core);
    ::sched_setaffinity(0, sizeof server_core, &server_core);
    Dialogues dialogues = several(16, [] { return gateway_dialogue(Steps::kLife); });
    while (!over_) drive(port, dialogues, 300 * dialogues.size());
  }
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

/// Lives of native jobs in one thread on a core of its own, which the other core's gateway and
/// those who ask it leave alone: what they share is the segment.
void native(benchmark::State& state, bool asked) {
  GatewayServer server;
  std::optional<Askers> askers;
  if (asked) askers.emplace(server.port());
  const std::uint64_t jobs = scaled(10'000'000);
  Stage stage(Cast::kThreads);
  stage.add(kLoadCore, [&](Stage::Part& part) {
    auto producer = value_of(Producer::attach(server.segment()), "attach");
    WorkerOptions options;
    options.queues = {"native"};
    auto worker = value_of(Worker::attach(server.segment(), options), "attach");
    JobSpec spec;
    spec.type = "native";
    spec.queue = "native";
    Job job;
    const auto lives = [&](std::uint64_t count) {
      for (; count > 0; --count) {
        (void)value_of(producer.enqueue(spec), "enqueue");
        if (const Status got = worker.try_fetch(job); !got) throw_error("fetch", got.error());
        if (const Status done = worker.ack(job); !done) throw_error("ack", done.error());
      }
    };
    lives(jobs / 10);
    part.begin();
    lives(jobs);
    part.end();
  });
  time_stage(state, stage, std::max<std::uint64_t>(jobs, 1), Cores::kLeftAlone);
}

}  // namespace

void add_http() {
  constexpr unsigned kFew = 16, kMany = 64;
  constexpr double kSlow = 12'000, kFast = 60'000;
  for (const auto& [topology, steps] :
       {std::pair("http_enqueue", Steps::kEnqueue), std::pair("http_life", Steps::kLife)}) {
    add<GatewayServer>(topology, "gateway", 1, steps, kSlow);
    if (is_installed("redis-server"))
      add<RedisOverTcp>(topology, "redis_zadd_bzpopmin_hdel", 1, steps, kSlow);
    if (is_installed("beanstalkd")) add<BeanstalkdOverTcp>(topology, "beanstalkd", 1, steps, kSlow);
  }
  add<GatewayServer>("http_life_16", "gateway", kFew, Steps::kLife, kFast);
  if (is_installed("redis-server"))
    add<RedisOverTcp>("http_life_16", "redis_zadd_bzpopmin_hdel", kFew, Steps::kLife, kFast);
  if (is_installed("beanstalkd"))
    add<BeanstalkdOverTcp>("http_life_16", "beanstalkd", kFew, Steps::kLife, kFast);
  // What three requests a life cost before any of them does something.
  add<Echo>("http_life_16", "beast_echo", kFew, Steps::kLife, kFast);
  add<GatewayServer>("http_enqueue_64", "gateway", kMany, Steps::kEnqueue, kFast);
  add<Echo>("http_enqueue_64", "beast_echo", kMany, Steps::kEnqueue, kFast);
  add_benchmark("http_batch_100/gateway", batches);
  add_benchmark("http_half_load/gateway", half_load);
  add_benchmark("http_native_alone/ojs_shm", [](benchmark::State& state) { native(state, false); });
  add_benchmark("http_native_beside/ojs_shm", [](benchmark::State& state) { native(state, true); });
}

}  // namespace ojs_shm::bench
