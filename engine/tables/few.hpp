// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <vector>

#include "shm/atomics.hpp"

namespace ojs_shm::engine {

/// A list of one operation that mostly has few: then it costs no allocation.
template <class T>
using Short = boost::container::small_vector<T, 4>;

/// A list that is short as a rule: the first N lie in place, further ones in a vector that keeps
/// its room.
template <class T, unsigned N>
class Few {
 public:
  /// The caller fills it in.
  OJS_SHM_INLINE T& add() { return ++size_ <= N ? few_[size_ - 1] : more_.emplace_back(); }
  void clear() {
    size_ = 0;
    if (!more_.empty()) [[unlikely]]
      more_.clear();
  }
  unsigned size() const { return size_; }
  const T& operator[](unsigned i) const { return i < N ? few_[i] : more_[i - N]; }
  template <class Test>
  OJS_SHM_INLINE bool all_of(const Test& test) const {
    for (unsigned i = 0; i < size_; ++i)
      if (!test((*this)[i])) return false;
    return true;
  }

 private:
  unsigned size_ = 0;
  std::array<T, N> few_;
  std::vector<T> more_;
};

}  // namespace ojs_shm::engine
