// SPDX-License-Identifier: Apache-2.0
//
// Memory that a run shares with the processes it forks. It has no name, so it cannot be left
// behind.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <system_error>

namespace ojs_shm::bench {

template <class T>
class SharedArray {
 public:
  explicit SharedArray(std::size_t count)
      : count_(count), bytes_((count * sizeof(T) + 4095) / 4096 * 4096) {
    // Populated now: a page fault inside a timed loop would be charged to the queue.
    void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED)
      throw std::system_error(errno, std::generic_category(), "mmap of the bench's shared memory");
    items_ = static_cast<T*>(at);
    std::uninitialized_value_construct_n(items_, count_);
  }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;
  ~SharedArray() { ::munmap(items_, bytes_); }

  T& operator[](std::size_t i) { return items_[i]; }
  T* operator->() { return items_; }
  T& operator*() { return *items_; }
  std::span<T> all() { return {items_, count_}; }

 private:
  std::size_t count_;
  std::size_t bytes_;
  T* items_ = nullptr;
};

}  // namespace ojs_shm::bench
