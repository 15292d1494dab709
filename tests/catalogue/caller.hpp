// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ojs_shm::test {

/// What the basic operations call. A process does it through the public API (hands.cpp), a fiber of
/// the tiny engine through an actor (tests/schedules/operations.cpp). Jobs are known by small
/// numbers; a smaller rank comes first. What comes too late (a job that another took, ended or
/// moved) is no failure; each body judges its answers by the books that it keeps.
class Caller {
 public:
  Caller() = default;
  Caller(const Caller&) = delete;
  virtual ~Caller() = default;

  /// One of four jobs that no other caller puts in. The fourth has a text too large for its slot.
  virtual unsigned own(unsigned number) const = 0;

  virtual void put(unsigned job, std::uint8_t rank) = 0;
  virtual void put_batch(unsigned first, std::uint8_t rank) = 0;  ///< two jobs
  /// A job of rank 3 under a client-supplied id, which put_again() supplies once more in vain.
  virtual void bring(unsigned job) = 0;
  virtual void put_again() = 0;
  /// Under an id that every caller of this supplies: one of them is let in.
  virtual void bring_beside(unsigned job) = 0;

  virtual void take() = 0;  ///< the best job, if any
  /// Two jobs one after the other, the second with what the look for the first has proved.
  virtual void take_finish_twice() = 0;
  // with the job that it holds, if any
  virtual void finish() = 0;
  virtual void give_back() = 0;
  virtual void leave() = 0;  ///< as a handle that is closed: all that is at work goes back
  virtual void fail() = 0;   ///< for good
  virtual void beat() = 0;   ///< and reports progress

  virtual void cancel(unsigned job) = 0;
  virtual void move(unsigned job, std::uint8_t rank) = 0;

  // What no process calls by itself.
  virtual void close_levels() = 0;  ///< all levels that it finds empty
  virtual void pack() = 0;          ///< all rings, without their dead hints
  virtual void tend() = 0;          ///< as a supervisor in some hours
};

}  // namespace ojs_shm::test
