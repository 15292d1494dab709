// SPDX-License-Identifier: Apache-2.0
// An attempt that ran too long, and what the job's own policy says of that. Source: ojs-timeouts
// 9.1.
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

struct Timeouts : testing::Test {
  QuietSegment s;

  /// The job after its first attempt ran for longer than a second, or was silent for as long.
  JobInfo passed(std::string_view final_errors, std::uint32_t timeout_ms) {
    const std::string extra =
        R"({"retry":{"non_retryable_errors":)" + std::string(final_errors) + "}}";
    JobSpec spec = spec_of();
    spec.extra = extra;
    spec.timeout_ms = timeout_ms;
    spec.lease_ms = 1000;
    spec.retry.initial_ms = spec.retry.max_ms = 3'600'000;
    const std::string id = s.put(spec);
    EXPECT_EQ(s.take(), id);
    s.pass(1001);
    return s.get(id);
  }
};

TEST_F(Timeouts, are_tried_again_unless_the_policy_lists_them) {
  for (const char* silent : {"[]", R"(["other"])", R"(["timeout.*","visibility_timeout"])"}) {
    const JobInfo job = passed(silent, 1000);
    EXPECT_EQ(job.state, State::kRetryable) << silent;
    EXPECT_TRUE(job.errors.at(0).retryable);
  }
  for (const char* final : {R"(["timeout"])", R"(["other","timeout"])"}) {
    const JobInfo job = passed(final, 1000);
    EXPECT_EQ(job.state, State::kDiscarded) << final;
    EXPECT_EQ(job.errors.at(0).type, "timeout");
    EXPECT_FALSE(job.errors.at(0).retryable);
  }
}

TEST_F(Timeouts, a_silence_is_tried_again_whatever_the_policy_lists) {
  const JobInfo job = passed(R"(["timeout","visibility_timeout"])", 0);
  EXPECT_EQ(job.state, State::kAvailable);
  EXPECT_EQ(job.errors.at(0).type, "visibility_timeout");
}

}  // namespace
}  // namespace ojs_shm::test
