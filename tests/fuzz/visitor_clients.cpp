// SPDX-License-Identifier: Apache-2.0
// What a visitor does for clients of its own: jobs that it fetches for them, and then names by id
// and fence.
#include <limits>

#include "tests/fuzz/visitor.hpp"

namespace ojs_shm::fuzz {
namespace {

constexpr std::string_view kQueues[] = {"default", "bounded", "other", "one-too-many"};

std::string some_worker(Input& input) { return "w" + std::to_string(input.below(3)); }

}  // namespace

void Visitor::fetch_for_client(Input& input) {
  FetchRequest wanted;
  const unsigned choice = input.byte();
  wanted.queues = {std::string(kQueues[choice & 3]), std::string(kQueues[choice >> 2 & 3])};
  if ((choice & 16) != 0) wanted.weights = {1 + input.byte(), 1};
  if (choice % 7 == 3) wanted.pool = "crew";
  wanted.held = (choice & 32) != 0;
  wanted.count = 1 + input.below(8);
  if ((choice & 64) != 0) wanted.tenant = "t" + std::to_string(input.below(3));
  if ((choice & 128) != 0) wanted.worker = some_worker(input);
  wanted.lease_ms = choice % 5 == 0 ? static_cast<std::uint32_t>(input.number(2)) : 0;
  const auto jobs = proxy_->fetch(wanted);
  if (!jobs.ok()) return;
  for (const JobInfo& job : *jobs) held_.emplace_back(job.id, job.fence);
  if (held_.size() > 16) held_.erase(held_.begin(), held_.end() - 16);
}

/// One that it got, or any job and a fence that is made up.
std::pair<std::string, std::uint64_t> Visitor::some_attempt(Input& input) {
  const std::size_t choice = input.byte();
  if (choice % 8 == 7 || held_.empty())
    return {some_id(input), choice % 2 == 0 ? 0 : input.number(2)};
  return held_[choice / 8 % held_.size()];
}

void Visitor::hand_over(Input& input) {
  const auto [id, fence] = some_attempt(input);
  (void)proxy_->hand_over(id, fence);
}

void Visitor::end_by_id(Input& input) {
  const auto [id, fence] = some_attempt(input);
  const unsigned choice = input.byte();
  if (choice % 4 == 0)
    (void)proxy_->requeue(id, fence);
  else if (choice % 4 == 1)
    (void)proxy_->nack(id, fence, {.message = "m", .retryable = choice < 128});
  else
    (void)proxy_->ack(id, fence, "[\"" + std::string(choice * 16, 'z') + "\"]");
}

void Visitor::tell_by_id(Input& input) {
  const auto [id, fence] = some_attempt(input);
  const auto lease = static_cast<std::uint32_t>(input.number(2));
  if (const auto end = proxy_->heartbeat(id, fence, lease); end.ok() && lease != 0)
    require(*end != std::numeric_limits<std::uint64_t>::max(), "a lease without an end");
  (void)proxy_->progress(id, fence, static_cast<double>(input.byte()) / 255);
  (void)proxy_->checkpoint(id, fence, lease % 2 == 0 ? "{\"row\":1}" : "{");
  (void)proxy_->now_ms();
}

void Visitor::report_worker(Input& input) {
  WorkerReport report;
  report.id = some_worker(input);
  const unsigned choice = input.byte();
  report.registers = (choice & 1) != 0;
  report.pledges = (choice & 2) != 0;
  if ((choice & 4) != 0) report.pool = "crew";
  if ((choice & 8) != 0) report.queues = {std::string(kQueues[choice >> 4 & 3])};
  if ((choice & 64) != 0) report.labels = "{\"l\":\"" + std::string(input.byte() * 4, 'l') + "\"}";
  if ((choice & 128) != 0) report.silence_ms = static_cast<std::uint32_t>(input.number(2));
  report.concurrency = report.active_jobs = choice >> 4;
  if (const auto known = proxy_->report(report); known.ok())
    require(known->id == report.id, "another worker");
}

}  // namespace ojs_shm::fuzz
