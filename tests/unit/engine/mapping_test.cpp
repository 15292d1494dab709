// SPDX-License-Identifier: Apache-2.0
// The slots are mapped before the first job needs them, so that no enqueue pays for a page.

#include <sys/resource.h>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

long page_faults() {
  rusage used{};
  EXPECT_EQ(::getrusage(RUSAGE_THREAD, &used), 0);
  return used.ru_minflt;
}

TEST(Mapping, slots_are_mapped_ahead_and_their_use_faults_no_more) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "NOT RUN: a sanitizer's own memory faults too";
#endif
  constexpr std::uint32_t kSlots = 16'384, kSlotsOfAPage = 4096 / shm::kSlotBytes;
  QuietSegment s(few_slots(kSlots));
  const shm::Segment& mapping = s.segment.attachment()->segment();
  std::uint64_t from = 0;
  int slices = 0;
  while (mapping.map_ahead(from)) ++slices;
  if (slices == 0) GTEST_SKIP() << "NOT RUN: this kernel has no MADV_POPULATE_WRITE";
  const long before = page_faults();
  for (std::uint32_t i = 0; i < kSlots; ++i) s.put(2);
  constexpr std::uint32_t kPagesOfAFault = 16;  // at most, where the kernel maps around it
  EXPECT_LT(page_faults() - before, static_cast<long>(kSlots / kSlotsOfAPage / kPagesOfAFault / 4));
}

}  // namespace
}  // namespace ojs_shm::test
