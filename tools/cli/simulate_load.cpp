// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/simulate_load.hpp"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>

#include "tools/cli/line_reader.hpp"
#include "tools/shell/pairs.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/json/envelope_trace.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;
using shell::refuse;

double number_of(const std::string& name, const std::string& text, double least, double most) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() ||
      !(number >= least && number <= most)) {
    refuse(Code::kInvalid, fmt::format("--synthetic: {}={} is not a number from {} to {}", name,
                                       text, least, most));
  }
  return number;
}

/// "a:3|b" -> {a, 3}, {b, 1}.
SyntheticLoad::Weights weights_of(const std::string& name, std::string text) {
  std::replace(text.begin(), text.end(), '|', ',');
  SyntheticLoad::Weights weights;
  for (const auto& [value, weight] : shell::pairs_of(text, ':'))
    weights.emplace_back(value, weight.empty() ? 1 : number_of(name, weight, 0, 1e9));
  double sum = 0;
  for (const auto& [value, weight] : weights) sum += weight;
  if (!(sum > 0))
    refuse(Code::kInvalid, fmt::format("--synthetic: {} has no weight above 0", name));
  return weights;
}

}  // namespace

SyntheticLoad synthetic_load_of(const std::string& text, std::uint64_t seed) {
  SyntheticLoad load;
  load.seed = seed;
  for (const auto& [name, value] : shell::pairs_of(text, '=')) {
    if (name == "jobs") {
      load.jobs = static_cast<std::uint32_t>(number_of(name, value, 1, 3'000'000));
    } else if (name == "rate") {
      load.rate = number_of(name, value, 0, 1e9);
    } else if (name == "service") {
      load.service_us = static_cast<std::int64_t>(must(shell::parse_duration_ms(value))) * 1000;
    } else if (name == "fixed" && value.empty()) {
      load.fixed_service = true;
    } else if (name == "queues") {
      load.queues = weights_of(name, value);
    } else if (name == "priorities") {
      load.priorities.clear();
      for (const auto& [level, weight] : weights_of(name, value))
        load.priorities.emplace_back(static_cast<std::int64_t>(number_of(name, level, 0, 255)),
                                     weight);
    } else if (name == "tenants") {
      load.tenants = weights_of(name, value);
    } else if (name == "unique") {
      load.unique_keys = static_cast<std::uint32_t>(number_of(name, value, 1, 1e6));
    } else if (name == "size") {
      load.size = static_cast<std::uint32_t>(number_of(name, value, 0, 1e6));
    } else {
      refuse(Code::kInvalid,
             fmt::format("--synthetic: \"{}\" is none of jobs=, rate=, service=, fixed, queues=, "
                         "priorities=, tenants=, size=, unique=",
                         name));
    }
  }
  return load;
}

Trace read_trace(const std::string& path, std::int64_t otherwise_us) {
  int fd = STDIN_FILENO;
  if (path != "-" && (fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) < 0) {
    refuse(errno == EACCES ? Code::kPermission : Code::kInvalid,
           fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  }
  LineReader lines(fd);
  TraceReader reader;
  bool empty = true;
  for (std::string line; lines.next(line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    empty = false;
    if (const Status taken = reader.take(line); !taken) {
      Error error = taken.error();
      error.message = fmt::format("{}:{}: {}", path, lines.count(), error.message);
      throw shell::Refusal{std::move(error)};
    }
  }
  if (fd != STDIN_FILENO) ::close(fd);
  if (empty) refuse(Code::kInvalid, path + " is not a trace: it is empty");
  return reader.finish(otherwise_us);
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  return shell::invalid(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

Status write_trace(const std::string& path, const Trace& trace) {
  std::string text = print_trace_head({trace.convention, "", 0}) + "\n";
  for (const SimulatedPool& pool : trace.pools) text += print_trace_pool(pool) + "\n";
  for (std::size_t i = 0; i < trace.arrivals.size(); ++i) {
    const TraceArrival& arrival = trace.arrivals[i];
    const std::string job = std::to_string(i + 1);
    std::vector<std::string> after;
    for (const std::uint32_t place : arrival.after) after.push_back(std::to_string(place + 1));
    text += print_trace_arrival(job, arrival, after) + "\n";
    text += print_trace_service(job, static_cast<double>(arrival.service_us) / 1000) + "\n";
  }
  return write_file(path, text);
}

}  // namespace ojs_shm::cli
