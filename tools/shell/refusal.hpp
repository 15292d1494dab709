// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <ojs_shm/result.hpp>

#include "tools/shell/exit_code.hpp"

namespace ojs_shm::shell {

/// Thrown to end a command with an Error; only main() catches it. Programs use it so that each step
/// of a command is one line; the library never throws.
struct Refusal {
  Error error;
};

template <class T>
T must(Result<T> result) {
  if (!result) throw Refusal{result.error()};
  return std::move(result).value();
}
inline void must(Status status) {
  if (!status) throw Refusal{status.error()};
}

/// What is wrong with a flag, a file or another input.
inline Error invalid(std::string message) {
  Error error;
  error.code = Code::kInvalid;
  error.message = std::move(message);
  return error;
}

[[noreturn]] inline void refuse(Code code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  throw Refusal{std::move(error)};
}

/// {"error":{"code","message",...}} with the depth and bound where there are any, and the line of
/// the input it is about.
std::string error_as_json(const Error& error, std::uint64_t line = 0);
/// One line to stderr, as text or JSON; returns the exit code that belongs to it.
ExitCode report(const Error& error, bool json);

}  // namespace ojs_shm::shell
