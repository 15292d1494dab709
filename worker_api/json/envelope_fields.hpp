// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ojs_shm/job.hpp>
#include <ojs_shm/result.hpp>

#include "worker_api/json/envelope_json.hpp"

/// What the parts of the envelope's reader share: the first complaint, and values that may be said
/// twice but not twice differently.
namespace ojs_shm::json {

/// Remembers the first thing that is wrong; everything after it is of no interest.
class Complaint {
 public:
  void about(std::string_view member, std::string_view what, Code code = Code::kInvalid,
             std::uint64_t bound = 0);
  void too_large(std::string_view member, std::size_t size, std::size_t most);
  /// "priority must be an integer, not 1.5"
  void wrong_kind(std::string_view member, std::string_view expected, std::string_view value);
  void raise(Error error) {
    if (!error_) error_ = std::move(error);
  }
  /// Of a member that means nothing, such as "unique.perod": no complaint, but its place is known.
  void ignore(std::string member) { ignored_.push_back(std::move(member)); }
  const std::vector<std::string>& ignored() const { return ignored_; }
  bool raised() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
  std::vector<std::string> ignored_;
};

/// Sets what is unset; a second, different value is a complaint.
template <class T>
void settle(std::optional<T>& slot, std::optional<T> value, std::string_view member,
            Complaint& complaint) {
  if (!value) return;
  if (slot && *slot != *value)
    return complaint.about(member, "is given twice, with different values");
  slot = std::move(value);
}

/// An integer within [0, max], else a complaint.
std::optional<std::uint32_t> whole_number(std::string_view member, std::string_view value,
                                          std::uint32_t max, Complaint& complaint);
/// Seconds as a number, or a duration as a text, in milliseconds.
std::optional<std::uint32_t> seconds_or_duration(std::string_view member, std::string_view value,
                                                 Complaint& complaint);
/// A duration as a text, in milliseconds.
std::optional<std::uint32_t> duration(std::string_view member, std::string_view value,
                                      Complaint& complaint);
std::optional<std::string> text(std::string_view member, std::string_view value,
                                Complaint& complaint);
std::optional<bool> boolean(std::string_view member, std::string_view value, Complaint& complaint);
/// Whether the value is an array of texts; complains when not.
bool check_texts(std::string_view member, std::string_view value, Complaint& complaint);

/// Members by name, in the order of their first mention.
class MemberList {
 public:
  /// Takes a compact value; the same name with another value is a complaint.
  void add(std::string_view name, std::string_view value, Complaint& complaint);
  bool empty() const { return members_.empty(); }
  std::string object() const;

 private:
  struct Entry {
    std::string name, value;
  };
  std::vector<Entry> members_;
  std::unordered_map<std::string, std::size_t> places_;
};

/// The members of a retry policy, spread over `retry`, `retry_policy` and a bare `max_attempts`.
class RetryFields {
 public:
  void read(std::string_view object, Complaint& complaint);
  void read_max_attempts(std::string_view member, std::string_view value, Complaint& complaint);
  /// The defaults with what was given.
  Retry policy() const;
  /// Members that mean nothing, such as "retry.max_attemps".
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  std::vector<std::string> unknown_;
  std::optional<std::uint32_t> max_attempts_, initial_ms_, max_ms_;
  std::optional<double> coefficient_;
  std::optional<RetryBackoff> backoff_;
  std::optional<bool> jitter_, dead_letter_;
};

}  // namespace ojs_shm::json
