// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/envelope_fields.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <spdlog/fmt/fmt.h>

#include "engine/rules/retry.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::json {
namespace {

constexpr std::uint32_t kMaxMs = std::numeric_limits<std::uint32_t>::max();

// Enough of a value to recognise it in a message.
std::string excerpt(std::string_view value) {
  constexpr std::size_t kLength = 40;
  const std::string text = compact(value);
  if (text.size() <= kLength) return text;
  std::size_t end = kLength;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;  // not in the middle of a character
  return text.substr(0, end) + "...";
}

std::optional<std::uint32_t> fit(std::string_view member, double ms, Complaint& complaint) {
  if (ms >= 0 && ms <= kMaxMs) return static_cast<std::uint32_t>(ms);
  complaint.about(member, ms < 0 ? "must not be negative" : "is longer than the 49 days it may be");
  return std::nullopt;
}

std::optional<RetryBackoff> backoff_by_name(std::string_view name) {
  if (name == "exponential") return RetryBackoff::kExponential;
  if (name == "linear") return RetryBackoff::kLinear;
  if (name == "constant" || name == "none") return RetryBackoff::kConstant;
  if (name == "polynomial") return RetryBackoff::kPolynomial;
  return std::nullopt;
}

/// Of an array of texts: whether one is empty.
bool names_nothing(std::string_view texts) {
  return std::ranges::any_of(elements_of(texts),
                             [](std::string_view text) { return string_of(text) == ""; });
}

}  // namespace

void Complaint::too_large(std::string_view member, std::size_t size, std::size_t most) {
  about(member, fmt::format("is {} bytes long; at most {} are allowed", size, most),
        Code::kTooLarge, most);
  if (error_->code == Code::kTooLarge && error_->subject == member) error_->depth = size;
}

void Complaint::about(std::string_view member, std::string_view what, Code code,
                      std::uint64_t bound) {
  if (error_) return;
  error_ =
      Error{code, fmt::format("{} {}", member, what)}.about(std::string(member)).at_most(bound);
}

void Complaint::wrong_kind(std::string_view member, std::string_view expected,
                           std::string_view value) {
  about(member, fmt::format("must be {}, not {}", expected, excerpt(value)));
}

std::optional<std::uint32_t> whole_number(std::string_view member, std::string_view value,
                                          std::uint32_t max, Complaint& complaint) {
  const auto number = integer_of(value);
  if (number && *number >= 0 && *number <= max) return static_cast<std::uint32_t>(*number);
  complaint.wrong_kind(member, fmt::format("an integer from 0 to {}", max), value);
  return std::nullopt;
}

std::optional<std::uint32_t> seconds_or_duration(std::string_view member, std::string_view value,
                                                 Complaint& complaint) {
  if (const auto seconds = number_of(value))
    return fit(member, std::round(*seconds * 1000), complaint);
  return duration(member, value, complaint);
}

std::optional<std::uint32_t> duration(std::string_view member, std::string_view value,
                                      Complaint& complaint) {
  const auto written = string_of(value);
  const ParsedMs parsed = parse_duration(written.value_or(""));
  if (parsed) return fit(member, static_cast<double>(parsed.ms), complaint);
  if (parsed.fault == TimeFault::kSyntax)
    complaint.wrong_kind(member, "a duration such as \"PT1S\"", value);
  else
    complaint.about(member, text_of(parsed.fault));
  return std::nullopt;
}

std::optional<std::string> text(std::string_view member, std::string_view value,
                                Complaint& complaint) {
  auto written = string_of(value);
  if (!written) complaint.wrong_kind(member, "a string", value);
  return written;
}

std::optional<bool> boolean(std::string_view member, std::string_view value, Complaint& complaint) {
  const auto written = bool_of(value);
  if (!written) complaint.wrong_kind(member, "true or false", value);
  return written;
}

bool check_texts(std::string_view member, std::string_view value, Complaint& complaint) {
  bool fits = kind_of(value) == Kind::kArray;
  if (fits) {
    for (const std::string_view element : elements_of(value))
      fits = fits && kind_of(element) == Kind::kString;
  }
  if (!fits) complaint.wrong_kind(member, "an array of strings", value);
  return fits;
}

void MemberList::add(std::string_view name, std::string_view value, Complaint& complaint) {
  const auto [place, is_new] = places_.try_emplace(std::string(name), members_.size());
  if (is_new)
    members_.push_back({std::string(name), compact(value)});
  else if (members_[place->second].value != compact(value))
    complaint.about(name.empty() ? "''" : name, "is given twice, with different values");
}

std::string MemberList::object() const {
  std::string out;
  ObjectWriter writer(out);
  for (const Entry& entry : members_) writer.open(entry.name) += entry.value;
  writer.close();
  return out;
}

void RetryFields::read_max_attempts(std::string_view member, std::string_view value,
                                    Complaint& complaint) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint16_t>::max();
  settle(max_attempts_, whole_number(member, value, kMost, complaint), member, complaint);
}

void RetryFields::read(std::string_view object, Complaint& complaint) {
  if (kind_of(object) != Kind::kObject) return complaint.wrong_kind("retry", "an object", object);
  for (const Member& given : members_of(object)) {
    const std::string member = "retry." + given.name;
    const std::string_view name = given.name, value = given.value;
    if (kind_of(value) == Kind::kNull) continue;  // as good as absent
    if (name == "max_attempts") {
      read_max_attempts(member, value, complaint);
    } else if (name == "initial_interval") {
      settle(initial_ms_, duration(member, value, complaint), member, complaint);
    } else if (name == "initial_interval_ms") {
      settle(initial_ms_, whole_number(member, value, kMaxMs, complaint), member, complaint);
    } else if (name == "max_interval") {
      settle(max_ms_, duration(member, value, complaint), member, complaint);
    } else if (name == "max_interval_ms") {
      settle(max_ms_, whole_number(member, value, kMaxMs, complaint), member, complaint);
    } else if (name == "backoff_coefficient") {
      const auto number = number_of(value);
      const engine::RetryPolicy tried{.coefficient = static_cast<float>(number.value_or(0))};
      if (engine::validate(tried) != engine::RetryFault::kNone)
        return complaint.wrong_kind(member, "a number of at least 1", value);
      settle(coefficient_, number, member, complaint);
    } else if (name == "backoff_strategy" || name == "backoff_type") {
      const auto backoff = backoff_by_name(string_of(value).value_or(""));
      if (!backoff)
        return complaint.wrong_kind(
            member, R"("exponential", "linear", "constant" or "polynomial")", value);
      settle(backoff_, backoff, member, complaint);
    } else if (name == "jitter") {
      settle(jitter_, boolean(member, value, complaint), member, complaint);
    } else if (name == "on_exhaustion") {
      const auto choice = string_of(value);
      if (choice != "discard" && choice != "dead_letter")
        return complaint.wrong_kind(member, R"("discard" or "dead_letter")", value);
      settle(dead_letter_, std::optional(choice == "dead_letter"), member, complaint);
    } else if (name == "non_retryable_errors") {
      if (check_texts(member, value, complaint) && names_nothing(value))
        return complaint.wrong_kind(member, "an array of types of errors", value);
    } else {
      unknown_.push_back(member);
    }
    if (complaint.raised()) return;
  }
  if (initial_ms_ == 0U)
    return complaint.about("retry.initial_interval", "must be longer than zero");
  if (max_ms_ && *max_ms_ < initial_ms_.value_or(Retry().initial_ms))
    complaint.about("retry.max_interval", "must not be shorter than initial_interval");
}

Retry RetryFields::policy() const {
  Retry retry;
  if (max_attempts_) retry.max_attempts = static_cast<std::uint16_t>(*max_attempts_);
  if (initial_ms_) retry.initial_ms = *initial_ms_;
  retry.max_ms = max_ms_.value_or(std::max(retry.max_ms, retry.initial_ms));
  if (coefficient_) retry.coefficient = static_cast<float>(*coefficient_);
  if (backoff_) retry.backoff = *backoff_;
  if (jitter_) retry.jitter = *jitter_;
  if (dead_letter_) retry.dead_letter = *dead_letter_;
  return retry;
}

}  // namespace ojs_shm::json
