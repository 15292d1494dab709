// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "tests/catalogue/caller.hpp"

namespace ojs_shm::test {

/// An operation on plain jobs, said once for all lanes: processes that are killed or stopped, every
/// schedule of the tiny engine, Relacy's memory.
struct BasicOperation {
  const char* name;
  std::function<void(Caller&)> act;
  /// Why no process is killed in it; empty when it joins those lanes too.
  const char* not_by_processes = "";
};

/// Each runs where let_three_wait() was before.
const std::vector<BasicOperation>& basic_operations();

/// Two jobs of rank 1, one of rank 2 and one of rank 3, whose id was brought, wait; job 5 was
/// cancelled, so that a dead hint stands among them.
void let_three_wait(Caller& caller);

}  // namespace ojs_shm::test
