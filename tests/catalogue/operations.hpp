// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/catalogue/hands.hpp"

namespace ojs_shm::test {

/// An operation as a process calls it. One entry in a family's file takes it into every lane that
/// kills or stops processes, and into the storm of all operations.
struct Operation {
  std::string name;
  std::function<void(Hands&)> prepare;  ///< runs unharmed
  std::function<void(Hands&)> act;      ///< is killed after each of its shared writes in turn
  /// Why no storm runs it beside others; empty when it does.
  const char* not_in_storms = "";
  /// Whether the operation also ends the jobs that other operations have put into the segment.
  bool ends_all = false;
  /// Whether the jobs that it puts in are there all, or none, wherever it is killed.
  bool all_or_none = false;
};

inline Operation all_or_none(Operation operation) {
  operation.all_or_none = true;
  return operation;
}

/// Operations of one subject.
struct Family {
  const char* name;
  std::vector<Operation> (*operations)();
  /// The file in tests/schedules that explores their orders of shared words, or why none does.
  const char* explored_in;
};
const std::vector<Family>& families();

/// All of all families.
const std::vector<Operation>& operations();
/// Those in which two threads write (thread_operations.cpp): for lanes that watch every thread. Who
/// steps one of them through its instructions could neither kill at those of the other nor tell
/// whose a change was.
const std::vector<Operation>& operations_of_threads();

}  // namespace ojs_shm::test
