// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <ojs_shm/result.hpp>

#include "worker_api/json/envelope.hpp"

namespace ojs_shm::cli {

/// What becomes of members of envelopes that mean nothing, of which most are misspelt.
class UnknownMembers {
 public:
  /// `strict`: they are refused; else they are counted.
  explicit UnknownMembers(bool strict) : strict_(strict) {}
  /// kInvalid, when strict, names the first one, and the member that it may have been meant to be.
  Status judge(const Envelope& envelope);
  /// One line on stderr that names those that were counted.
  void warn() const;

 private:
  bool strict_;
  std::uint64_t jobs_ = 0;
  std::map<std::string, std::uint64_t> seen_;
};

}  // namespace ojs_shm::cli
