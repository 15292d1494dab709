// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <ojs_shm/result.hpp>

#include "worker_api/json/envelope.hpp"

/// Members of envelopes, crons and workflows that mean nothing, of which most are misspelt.
namespace ojs_shm::shell {

/// What has the members.
enum class Document : std::uint8_t { kJob, kCron, kWorkflow };

/// "`max_attemps`, did you mean `max_attempts`?", or only the name in backticks.
std::string told_member(Document kind, const std::string& name);

/// kInvalid, when there is one, names the first, and the member that it may have been meant to be;
/// `subject` is the first.
Status refuse_unknown(Document kind, std::span<const std::string> unknown);

/// What becomes of those of many envelopes.
class UnknownMembers {
 public:
  /// `strict`: they are refused; else they are counted.
  explicit UnknownMembers(bool strict) : strict_(strict) {}
  /// As refuse_unknown(), when strict.
  Status judge(const Envelope& envelope);
  /// One line on stderr that names those that were counted.
  void warn() const;

 private:
  bool strict_;
  std::uint64_t jobs_ = 0;
  std::map<std::string, std::uint64_t> seen_;
};

}  // namespace ojs_shm::shell
