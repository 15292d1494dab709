// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "engine/rules/uuid.hpp"
#include "tests/linearizability/history.hpp"

namespace ojs_shm::test {

/// One process at work on a queue. A call fills the answer of its operation, and what else it
/// learns.
class Hands {
 public:
  virtual ~Hands() = default;
  /// `id`: in, the one to bring, if any; out, the one that others can use.
  virtual void enqueue(Operation& operation, std::uint64_t tag,
                       std::optional<engine::JobId>& id) = 0;
  struct Fetched {
    std::uint64_t tag = 0, since = 0;
  };
  /// A job that is held must be acked or requeued by this process.
  virtual Fetched fetch(Operation& operation) = 0;
  virtual void ack(Operation& operation) = 0;
  virtual void requeue(Operation& operation) = 0;
  virtual void cancel(Operation& operation, engine::JobId id) = 0;
  virtual void reprioritize(Operation& operation, engine::JobId id) = 0;
  /// Repairs after one death; false when no process is known to be dead yet.
  virtual bool mend() = 0;
  /// The available_at by which a front lane orders this job.
  virtual std::uint64_t since(engine::JobId id) = 0;
  /// The line where this process is at home, where there are several.
  virtual std::uint8_t home() { return 0; }
  /// By which the queue chooses from now on.
  virtual Rules rules() { return {}; }
  /// Lets all that wait become older by more than an interval, where that makes a difference.
  virtual void grow_older() {}
};

/// A queue that several processes can attach to.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Called once in each process.
  virtual std::unique_ptr<Hands> attach() = 0;
};

/// How a queue of the engine chooses among its levels, or that it has several lines of them.
enum class Choice : std::uint8_t { kStrict, kAging, kWeighted, kSharded };
/// The engine, in a segment of its own.
std::unique_ptr<Subject> engine_subject(Choice choice = Choice::kStrict);
/// The same, wrong on purpose: it says that it chooses so, and is strict.
std::unique_ptr<Subject> engine_that_only_says(Choice choice);

/// What a toy does wrong.
enum class Flaw : std::uint8_t {
  kNone,         ///< one lock around everything
  kLooksOnce,    ///< a lock for each level; the fetch does not look at the better ones again
  kTakesNewest,  ///< last in, first out
  kForgets,      ///< two enqueues at once may take the same place
  kGivesTwice,   ///< two fetches at once may take the same job
  kEmptyEarly,   ///< a fetch that finds the lock taken says that nothing is there
};
/// A small queue in shared memory, wrong in one way.
std::unique_ptr<Subject> toy_subject(Flaw flaw);

}  // namespace ojs_shm::test
