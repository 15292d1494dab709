// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace ojs_shm::engine {

/// The records of one kind in a segment. An index out of shared memory may be any number: one that
/// is too large leads to the first record, whose words do not fit the question.
template <class T>
class Table {
 public:
  Table() = default;
  Table(T* first, std::uint32_t size) : first_(first), size_(size) {}
  std::uint32_t size() const { return size_; }
  T& operator[](std::uint32_t i) const { return first_[i < size_ ? i : 0]; }

 private:
  T* first_ = nullptr;
  std::uint32_t size_ = 0;
};

/// Gives out an area of a segment table by table.
class Tables {
 public:
  explicit Tables(std::byte* begin) : at_(begin) {}
  template <class T>
  T* next(std::uint64_t count) {
    std::byte* const here = at_;
    at_ += count * sizeof(T);
    return reinterpret_cast<T*>(here);
  }
  template <class T>
  Table<T> table(std::uint32_t size) {
    return {next<T>(size), size};
  }

 private:
  std::byte* at_;
};

}  // namespace ojs_shm::engine
