// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tests/support/process.hpp"

namespace ojs_shm::test {

/// The child's side of a Forked: it tells its parent lines and hears lines from it.
class Parent {
 public:
  Parent(int in, int out) : in_(in), out_(out) {}
  void tell(std::string_view line) const;
  /// Waits for the next line; empty when the parent is gone.
  std::string hear() const;

 private:
  int in_, out_;
};

/// Where a child lives.
struct Surroundings {
  bool pid_namespace = false;  ///< of its own, where it is pid 1
  std::string bind_from = {};  ///< this directory stands at `bind_at` too, seen by it alone
  std::string bind_at = {};
  std::string tmpfs_at = {};       ///< a new tmpfs, seen by it alone, on this directory
  std::string tmpfs_options = {};  ///< such as "size=1m"
  std::optional<uid_t> user = {};  ///< with `group` as its only group
  std::optional<gid_t> group = {};
};

/// A fork of this process, without an exec, that runs one function and ends with its result as exit
/// code. What a test needs of other processes when it needs their insides too. Destroying it kills
/// it with SIGKILL by its pid.
class Forked {
 public:
  using Body = std::function<int(Parent&)>;
  explicit Forked(const Body& body, const Surroundings& surroundings = {});
  ~Forked();
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  /// Why the surroundings could not be made (the machine forbids it); the body did not run then.
  const std::string& forbidden() const { return forbidden_; }
  pid_t pid() const { return pid_; }
  /// Its next line; nothing when it ended or the bound passed.
  std::optional<std::string> listen(std::chrono::milliseconds bound = kBound);
  void tell(std::string_view line);
  void signal(int number);
  /// Its exit code, 128 + signal, or -1 when it did not end within the bound and was killed.
  int wait(std::chrono::milliseconds bound = kBound);
  /// Without reaping it: it stays a zombie.
  bool ended();

 private:
  int collect(bool block);
  pid_t child_ = -1;  // ours to reap: pid_ itself, or the process that put it into its namespace
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, code_ = -1;
  bool reaped_ = false;
  std::string pending_, forbidden_;
};

/// Nothing of the machine's is needed but what is there; else the test is skipped with the reason.
#define OJS_SHM_SKIP_IF_FORBIDDEN(forked) \
  if (!(forked).forbidden().empty()) GTEST_SKIP() << "NOT RUN: " << (forked).forbidden()

}  // namespace ojs_shm::test
