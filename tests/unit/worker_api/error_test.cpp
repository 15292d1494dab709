// SPDX-License-Identifier: Apache-2.0
// An error and its setters: each sets what it names, and nothing else.
#include <ojs_shm/result.hpp>

#include <gtest/gtest.h>

namespace ojs_shm::test {
namespace {

TEST(Errors, have_what_was_set_and_nothing_else) {
  const Error plain{Code::kInvalid, "no"};
  EXPECT_EQ(plain.subject, "");
  EXPECT_EQ(plain.depth, 0U);
  EXPECT_EQ(plain.bound, 0U);
  EXPECT_EQ(plain.unit, "");
  EXPECT_EQ(plain.state, "");
  EXPECT_FALSE(plain.tenant);

  const Error most = Error{Code::kInvalid, "no"}.about("shards").at_most(64);
  EXPECT_EQ(most.code, Code::kInvalid);
  EXPECT_EQ(most.message, "no");
  EXPECT_EQ(most.subject, "shards");
  EXPECT_EQ(most.bound, 64U);
  EXPECT_EQ(most.unit, "");
  EXPECT_EQ(most.depth, 0U);

  const Error full = Error{Code::kSegmentFull}.about("blocks").uses(7, 8, "blocks");
  EXPECT_EQ(full.depth, 7U);
  EXPECT_EQ(full.bound, 8U);
  EXPECT_EQ(full.unit, "blocks");

  const Error other = Error{Code::kDuplicate}.in_state("active").about("id");
  EXPECT_EQ(other.state, "active");
  EXPECT_EQ(other.subject, "id");
}

}  // namespace
}  // namespace ojs_shm::test
