// SPDX-License-Identifier: Apache-2.0
#include "tests/support/live_segment.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::test {

LiveSegment::LiveSegment(std::vector<std::string> broker_flags) {
  start_broker(std::move(broker_flags));
}

/// The options go before "--": what stands behind it belongs to a command.
std::vector<std::string> LiveSegment::with_target(std::string_view name,
                                                  const std::vector<std::string>& words) const {
  std::vector<std::string> argv = {program(name)};
  argv.insert(argv.end(), words.begin(), words.end());
  const std::string target[] = {"--name", "test", "--dir", folder_.path()};
  argv.insert(std::find(argv.begin(), argv.end(), "--"), std::begin(target), std::end(target));
  return argv;
}

void LiveSegment::start_broker(std::vector<std::string> flags) {
  broker_.emplace(Process::start(with_target("ojs-shm-broker", flags)));
  const auto ready = broker_->read_line();
  if (ready != "READY name=test")
    throw std::runtime_error("the broker did not start: " + broker_->err());
}

Finished LiveSegment::cli(const std::vector<std::string>& words, std::string input) const {
  ProcessOptions options;
  options.input = std::move(input);
  return start_cli(words, options).wait();
}

Process LiveSegment::start_cli(const std::vector<std::string>& words,
                               const ProcessOptions& options) const {
  return Process::start(with_target("ojs-shm", words), options);
}

std::string LiveSegment::enqueue(const std::vector<std::string>& flags) const {
  std::vector<std::string> words = {"enqueue"};
  words.insert(words.end(), flags.begin(), flags.end());
  const Finished done = cli(words);
  if (done.exit_code != 0) throw std::runtime_error("enqueue: " + done.err);
  return lines_of(done.out).at(0);
}

std::string LiveSegment::job(const std::string& id, std::string_view path) const {
  return member(cli({"get", id, "--json"}).out, path);
}

bool LiveSegment::becomes(const std::string& id, std::string_view state) const {
  return eventually([&] { return job(id, "state") == state; });
}

bool LiveSegment::is_mapped_by(const Process& process) const {
  const std::string maps = "/proc/" + std::to_string(process.pid()) + "/maps";
  return run({"cat", maps}).out.find(file()) != std::string::npos;
}

std::uint64_t unfinished(const QueueInfo& queue) {
  std::uint64_t jobs = 0;
  for (std::size_t state = 0; state < std::size(queue.by_state); ++state)
    if (!is_terminal(static_cast<State>(state))) jobs += queue.by_state[state];
  return jobs;
}

std::string member(std::string_view object, std::string_view path) {
  if (!json::check(object) || json::kind_of(object) != json::Kind::kObject) return {};
  const auto dot = path.find('.');
  for (const json::Member& found : json::members_of(object)) {
    if (found.name != path.substr(0, dot)) continue;
    if (dot != std::string_view::npos) return member(found.value, path.substr(dot + 1));
    return json::string_of(found.value).value_or(std::string(found.value));
  }
  return {};
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace ojs_shm::test
