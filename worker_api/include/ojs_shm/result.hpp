// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <ojs_shm/export.hpp>

namespace ojs_shm {

/// Every way in which a call can end. Closed: a new one needs a new minor version of the library.
/// The numbers are those of the C ABI with the sign turned (OJS_SHM_E_NOT_FOUND is -4).
enum class Code : std::uint8_t {
  kOk = 0,
  kInternal = 1,      ///< a bug of ours, or an operating-system call that should not fail
  kInvalid = 2,       ///< an argument is wrong; the message names it
  kCannotAttach = 3,  ///< no such segment, or it is not a readable one of this library
  kNotFound = 4,      ///< no job, queue or waiter of that name
  kWrongState = 5,    ///< the job's state forbids it; the error names the state
  /// the queue's bound refused the job; the error has depth, bound, strategy and a delay
  kQueueFull = 6,
  /// a pool of the segment is exhausted; the error names pool, use and the options to set
  kSegmentFull = 7,
  kPermission = 8,    ///< the operating system refused access to the segment
  kInUse = 9,         ///< another process has that name, role or file
  kOtherFormat = 10,  ///< another segment format, layout or convention
  /// a job with that id exists, or one of the same unique key is in the way
  kDuplicate = 11,
  kTooLarge = 12,  ///< body, result or name longer than the segment's maximum
  kEmpty = 13,     ///< nothing to fetch
  kTimeout = 14,   ///< the given time passed
  /// the job is no longer held by the caller (lease expired, or it was taken back)
  kLost = 15,
  kClosed = 16,        ///< the handle was closed, or belongs to the parent of a fork
  kNoSpace = 17,       ///< the file system cannot hold the segment; the message names size and path
  kStaleVersion = 18,  ///< the library is older or newer than the caller's header
};

/// The short stable name of a code, such as "not_found".
OJS_SHM_API std::string_view code_name(Code code) noexcept;

/// What went wrong, for a person (message) and for a program (the rest; 0 or empty where it does
/// not apply).
struct Error {
  Code code = Code::kInternal;
  std::string message = {};
  std::string subject = {};  ///< the queue, pool, member or state the error speaks of
  /// kQueueFull, kSegmentFull: present use, in `unit`; kTooLarge: the size in bytes, where known
  std::uint64_t depth = 0;
  /// kQueueFull, kSegmentFull: the limit, in `unit`; kInvalid: the allowed maximum
  std::uint64_t bound = 0;
  std::string_view unit = "";  ///< "jobs" or "bytes"; of kSegmentFull the pool's, such as "blocks"
  std::string_view strategy = "";    ///< kQueueFull: the queue's, such as "reject"
  std::uint32_t retry_after_ms = 0;  ///< kQueueFull: when there may be room; at least a second
  /// kDuplicate of a unique key: the state of the job in the way, whose id is `subject`; kNotFound
  /// of a job: "gone" when the segment had it
  std::string_view state = "";
  std::optional<std::string> tenant =
      {};  ///< kQueueFull: whose bound it is, "" that of jobs without a tenant; none: the queue's

  // Named setters: Error{Code::kInvalid, "a queue has 1 to 64 shards"}.about("shards").at_most(64)
  // Units and states are kept as views: only texts that live for ever, and end with a zero.
  Error about(std::string what) && {
    subject = std::move(what);
    return std::move(*this);
  }
  Error at_most(std::uint64_t most, std::string_view counted_in = "") && {
    bound = most;
    unit = counted_in;
    return std::move(*this);
  }
  /// `most` 0: it has no bound.
  Error uses(std::uint64_t present, std::uint64_t most, std::string_view counted_in = "") && {
    depth = present;
    return std::move(*this).at_most(most, counted_in);
  }
  Error in_state(std::string_view found) && {
    state = found;
    return std::move(*this);
  }
};

/// A value or an Error. Reading the value of an error is a bug and ends the process.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return held_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  T& value() & { return *checked(); }
  const T& value() const& { return *const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(*checked()); }
  T* operator->() { return checked(); }
  const T* operator->() const { return const_cast<Result*>(this)->checked(); }
  T& operator*() & { return *checked(); }
  const T& operator*() const& { return *const_cast<Result*>(this)->checked(); }
  T&& operator*() && { return std::move(*checked()); }
  const Error& error() const { return std::get<1>(held_); }
  Code code() const noexcept { return ok() ? Code::kOk : std::get<1>(held_).code; }

 private:
  T* checked() {
    if (!ok()) fail_on_missing_value(std::get<1>(held_));
    return &std::get<0>(held_);
  }
  [[noreturn]] static void fail_on_missing_value(const Error& error);
  std::variant<T, Error> held_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept {}  // not defaulted: that would clear the room of the Error each time
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  const Error& error() const { return error_.value(); }
  Code code() const noexcept { return error_ ? error_->code : Code::kOk; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

[[noreturn]] OJS_SHM_API void die_of_missing_value(const Error& error);

template <class T>
void Result<T>::fail_on_missing_value(const Error& error) {
  die_of_missing_value(error);
}

}  // namespace ojs_shm
