// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

std::vector<JobSpec> one_for_each(const std::vector<std::string>& queues) {
  std::vector<JobSpec> specs;
  for (const std::string& queue : queues) specs.push_back(spec_of({}, queue));
  return specs;
}

std::size_t queues_of(const QuietSegment& s) { return s.observer.queues().size(); }

TEST(NewQueues, a_batch_for_more_than_there_can_be_makes_none) {
  QuietSegment s;  // of eight queues
  s.put();
  const std::size_t before = queues_of(s);
  const std::vector<std::string> eight = {"a", "b", "c", "d", "e", "f", "g", "h"};
  const auto refused = s.producer.enqueue_batch(one_for_each(eight));
  EXPECT_EQ(refused.code(), Code::kSegmentFull);
  EXPECT_EQ(queues_of(s), before);
  // As many as there is room for, each of them twice.
  const std::vector<std::string> rest(eight.begin(), eight.end() - static_cast<long>(before));
  const std::vector<JobSpec> once = one_for_each(rest);
  std::vector<JobSpec> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_TRUE(s.producer.enqueue_batch(twice).ok());
  EXPECT_EQ(queues_of(s), 8U);
}

}  // namespace
}  // namespace ojs_shm::test
