// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/catalogue/operations.hpp"
#include "tests/instructions/stepped.hpp"

namespace ojs_shm::test {

/// How many instructions lie between two kills of the long form, which kills after every change as
/// well; 0: the short form, which takes what fits into a short run.
std::size_t stride();
inline bool exhaustive() { return stride() != 0; }

/// A child that has prepared the operation and stands at its first instruction.
std::unique_ptr<Stepped> start(const Operation& operation, const SegmentName& where,
                               bool complains = true);

/// What one run of an operation without a kill showed.
class Trace {
 public:
  /// Single-steps the operation in a segment of its own and looks after each instruction whether
  /// that has changed; after one that by its code writes nothing only when it `doubts`, and throws
  /// when that did.
  Trace(const Operation& operation, const SegmentName& where, bool doubts = exhaustive());

  std::size_t instructions() const { return at_.size() - 1; }
  std::size_t own() const {
    return own_;
  }  ///< of them in this program, not in the system's libraries
  std::size_t ends() const { return ends_; }  ///< how many of the jobs that stood there before
  /// Whether it ends more jobs where there are more: it ends all, or its full queue drops others.
  bool ends_any_number() const { return ends_any_number_; }
  /// How many changes others have seen after n instructions.
  std::uint32_t changes(std::size_t n) const { return seen_[n]; }
  std::uint32_t changes() const { return seen_.back(); }
  /// After how many instructions each of the changes is there.
  std::vector<std::size_t> after_changes() const;
  /// Moves a new child on by n instructions. False when it came to another place than the first
  /// run.
  bool repeat(Stepped& child, std::size_t n) const;

 private:
  void add(std::uintptr_t address, std::uint32_t changes);

  std::vector<std::uintptr_t> at_;  ///< [n]: the instruction that comes after n instructions
  /// [n]: the same, numbered in the order in which they first came
  std::vector<std::uint32_t> which_;
  std::vector<std::uint32_t> seen_;
  std::size_t own_ = 0, ends_ = 0;
  bool ends_any_number_ = false;
  std::unordered_map<std::uintptr_t, std::uint32_t> numbers_;
};

/// The trace of that operation, made when it is first asked for.
const Trace& trace_of(const std::string& operation, const SegmentName& where);
const Operation& operation_named(const std::string& name);
std::vector<std::string> names_of_operations();

}  // namespace ojs_shm::test
