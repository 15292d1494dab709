// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/job.hpp>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/routes/exchange.hpp"
#include "tools/gateway/serving/desk.hpp"

namespace ojs_shm::gateway {

/// What became of a request with an idempotency key, so that the same request again changes nothing
/// and gets the same reply: a pending job of the queue "ojs.receipts", unique by tenant, operation
/// and key. It ends by itself after 24 hours. The first one says which ids the request's jobs have;
/// the reply takes its place. A gateway that dies in between leaves the first, and after 30 seconds
/// another goes on from there. One thread at a time. Source: ojs-bulk-operations 10.
class Receipt {
 public:
  static constexpr std::string_view kQueue = "ojs.receipts";

  /// Nothing: the request has no key. Throws a Fault: 400 when it is none; 409 when it came with
  /// another request, or with one that is still at work.
  static std::optional<Receipt> of(Desk& desk, const Request& request, const Body& body,
                                   std::string_view operation);

  /// What the same request was answered; nothing: it is to be done.
  const std::optional<Reply>& reply() const { return reply_; }
  /// Of its new job at that place; below 1,024.
  JobIdText id_of(std::size_t at) const;
  /// The jobs that it is to change, as note() left them; nothing: they were not chosen yet.
  const std::optional<std::vector<std::string>>& chosen() const { return chosen_; }
  void note(Desk& desk, std::vector<std::string> chosen);
  /// The request turns out to be refused: nothing was done, and its key is free.
  void give_up(Desk& desk) const;
  /// Whether it goes on with a request whose gateway died.
  bool taken_over() const { return since_ms_ != 0; }
  /// Whether that request stored the job.
  bool brought(const JobInfo& job) const { return job.created_at_ms >= since_ms_; }
  /// False: the reply is larger than a job's args may be. In a full segment the reply is not kept;
  /// what the receipt said before still is.
  bool keep(Desk& desk, const Reply& reply) const;

 private:
  Receipt() = default;
  bool claim(Desk& desk);
  void read(std::string_view args, std::uint64_t created_at_ms, std::uint64_t now_ms);
  Result<JobIdText> put(Desk& desk, std::string_view outcome, OnConflict on_conflict) const;

  std::string claimed() const;

  std::string holder_, request_;  ///< JSON of tenant, operation and key; a hash of what was asked
  std::string id_;                ///< of the receipt
  std::optional<std::vector<std::string>> chosen_;
  JobIdText first_id_;
  std::uint64_t since_ms_ = 0;
  std::optional<Reply> reply_;
};

}  // namespace ojs_shm::gateway
