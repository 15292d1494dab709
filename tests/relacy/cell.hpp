// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// What stands beneath the door of atomics in the build for Relacy (OJS_SHM_CELL): a cell of the
// size and the interface of std::atomic, whose accesses go with the order they name to the memory
// model of tests/relacy/memory.cpp. The layout of a segment stays what it is.

namespace ojs_shm::shm {

enum class Update : std::uint8_t { kAdd, kOr, kAnd, kExchange };

std::uint64_t model_load(const void* word, std::size_t size, std::memory_order order);
void model_store(void* word, std::size_t size, std::uint64_t value, std::memory_order order);
std::uint64_t model_update(void* word, std::size_t size, Update update, std::uint64_t operand,
                           std::memory_order order);
bool model_cas(void* word, std::size_t size, std::uint64_t& expected, std::uint64_t desired,
               std::memory_order order);

template <class T>
class Cell {
 public:
  static_assert(sizeof(T) <= 8);
  Cell() = default;
  constexpr explicit Cell(T value) : value_(value) {}
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  T load(std::memory_order order) const {
    return static_cast<T>(model_load(&value_, sizeof(T), order));
  }
  void store(T value, std::memory_order order) { model_store(&value_, sizeof(T), value, order); }
  T fetch_add(T value, std::memory_order order) { return update(Update::kAdd, value, order); }
  T fetch_or(T bits, std::memory_order order) { return update(Update::kOr, bits, order); }
  T fetch_and(T bits, std::memory_order order) { return update(Update::kAnd, bits, order); }
  T exchange(T value, std::memory_order order) { return update(Update::kExchange, value, order); }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order order) {
    std::uint64_t found = expected;
    const bool done = model_cas(&value_, sizeof(T), found, desired, order);
    expected = static_cast<T>(found);
    return done;
  }

 private:
  T update(Update update, T operand, std::memory_order order) {
    return static_cast<T>(model_update(&value_, sizeof(T), update, operand, order));
  }
  alignas(sizeof(T)) T value_;
};

}  // namespace ojs_shm::shm
