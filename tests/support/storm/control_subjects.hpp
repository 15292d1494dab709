// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "tests/support/storm/subject.hpp"

// Two well-known ways to pass messages between processes that were not made for processes that die.
// They go through the very storm that we go through: a storm that does not break them would prove
// nothing about us.

namespace ojs_shm::test {

/// Boost.Interprocess message_queue: a mutex and two condition variables in shared memory. Who dies
/// in the mutex takes everybody along.
std::unique_ptr<Subject> boost_queue_subject(const std::string& name);

/// Vyukov's bounded ring: a ticket is taken first and the cell is filled then. Who dies in between
/// stops everybody who comes to that cell.
std::unique_ptr<Subject> vyukov_ring_subject(const std::string& name);

}  // namespace ojs_shm::test
