// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/watch.hpp"

#include <optional>

#include "shm/atomics.hpp"
#include "tests/fuzz/input.hpp"

namespace ojs_shm::fuzz {
namespace {

/// Who passes more words than this in one operation goes in circles: the longest walk that was seen
/// to end passed 13 million.
constexpr std::uint64_t kMostAccesses = 200'000'000;

struct Ordered {
  Blow blow;
  std::uint64_t accesses;
  std::byte* segment;
};
std::uint64_t accesses = 0;
std::optional<Ordered> ordered;

void on_access(shm::Access access, shm::Point, const void*) {
  if (access == shm::Access::kWritten) return;
  if (++accesses > kMostAccesses) broken("an operation does not end");
  if (!ordered || ordered->accesses-- != 0) return;
  ordered->blow.strike(ordered->segment);
  ordered.reset();
}

}  // namespace

Watch::Watch() {
  begin_operation();
  shm::thread_hook = on_access;
}
Watch::~Watch() {
  shm::thread_hook = nullptr;
  ordered.reset();
}
void Watch::begin_operation() { accesses = 0; }
void Watch::order(const Blow& blow, std::uint64_t after, std::byte* segment) {
  ordered = Ordered{blow, after, segment};
}

}  // namespace ojs_shm::fuzz
