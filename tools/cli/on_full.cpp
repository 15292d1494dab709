// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/on_full.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <optional>

#include "tools/shell/pairs.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {
namespace {

std::uint32_t count_of(const std::string& name, const std::string& text) {
  std::uint32_t count = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (fault != std::errc() || end != text.data() + text.size() || count == 0) {
    shell::refuse(Code::kInvalid,
                  fmt::format("--on-full: {}={} is not a number of at least 1", name, text));
  }
  return count;
}

}  // namespace

OnFull on_full_of(const std::string& text, const Segment& segment) {
  OnFull on_full;
  if (text.empty()) return on_full;
  CircuitBreaker::Options breaker{.refusals = 0};
  LocalBufferOptions buffer{.max_jobs = 0};
  for (const auto& [name, value] : shell::pairs_of(text, '=')) {
    const auto time = [&text = value] { return shell::wait_of(text); };
    if (name == "retry") {
      on_full.options.retry.retries = count_of(name, value);
    } else if (name == "max") {
      on_full.options.retry.max_delay = time();
    } else if (name == "breaker") {
      breaker.refusals = count_of(name, value);
    } else if (name == "cooldown") {
      breaker.cooldown = time();
    } else if (name == "buffer") {
      buffer.max_jobs = count_of(name, value);
    } else if (name == "flush") {
      on_full.flush = time();
    } else {
      shell::refuse(Code::kInvalid,
                    fmt::format("--on-full: \"{}\" is none of retry=, max=, breaker=, cooldown=, "
                                "buffer=, flush=",
                                name));
    }
  }
  ResilienceOptions& options = on_full.options;
  if (options.retry.retries == 0 && breaker.refusals == 0 && buffer.max_jobs == 0) {
    shell::refuse(Code::kInvalid, "--on-full: give one of retry=, breaker=, buffer=");
  }
  if (breaker.refusals != 0) options.breaker = std::make_shared<CircuitBreaker>(breaker);
  buffer.max_delay = options.retry.max_delay;
  if (buffer.max_jobs != 0)
    options.buffer = shell::must(LocalBuffer::start(segment, buffer, options.breaker));
  return on_full;
}

}  // namespace ojs_shm::cli
