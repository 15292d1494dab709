// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/cron_change.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "worker_api/json/unique_key.hpp"

namespace ojs_shm {
namespace {

constexpr std::uint64_t kNow = 1'769'515'200'000;

CronInfo info() {
  CronInfo cron;
  cron.name = "a";
  cron.expression = "@daily";
  cron.timezone = "Asia/Tokyo";
  cron.next_run_at_ms = kNow;
  cron.run_count = 3;
  cron.job.type = "t";
  cron.job.queue = "q";
  cron.job.args = "[1]";
  cron.job.extra = R"({"meta":{"tenant_id":"x"}})";
  cron.job.priority = 2;
  return cron;
}

TEST(CronChange, a_change_keeps_the_rest) {
  const auto read = parse_cron_changes(
      info(), R"({"cron":"@hourly","options":{"queue":"p","priority":0},"args":[2]})", kNow);
  ASSERT_TRUE(read) << read.error().message;
  const CronSpec& spec = (*read)->spec;
  EXPECT_EQ(spec.name, "a");
  EXPECT_EQ(spec.expression, "@hourly");
  EXPECT_EQ(spec.timezone, "Asia/Tokyo");
  EXPECT_EQ(spec.job.type, "t");
  EXPECT_EQ(spec.job.args, "[2]");
  EXPECT_EQ(spec.job.queue, "p");
  EXPECT_EQ(spec.job.priority, 0);
  EXPECT_EQ(spec.job.tenant, "x");
}

TEST(CronChange, an_option_at_the_top_is_one_as_well) {
  const auto read = parse_cron_changes(info(), R"({"queue":"p","enabled":false})", kNow);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->spec.job.queue, "p");
  EXPECT_FALSE((*read)->spec.enabled);
}

/// As the gateway makes it for a tenant's client, and as the words of the job say it.
TEST(CronChange, a_key_among_the_jobs_of_a_tenant_stays_one) {
  CronInfo cron = info();
  cron.job.extra = R"({"meta":{"tenant_id":"x"},"unique":{"keys":["type"]}})";
  JobSpec spec;
  spec.type = cron.job.type;
  spec.queue = cron.job.queue;
  spec.args = cron.job.args;
  spec.extra = cron.job.extra;
  const std::string of_tenant = unique_in_tenant(spec)->key(), by_words = unique_in(spec)->key();
  ASSERT_NE(of_tenant, by_words);
  for (const std::string& key : {of_tenant, by_words}) {
    cron.job.unique_key = key.substr(0, 32);
    const auto read = parse_cron_changes(cron, R"({"description":"other"})", kNow);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ((*read)->spec.job.unique->key(), key);
  }
}

TEST(CronChange, a_template_replaces_the_job) {
  const auto read =
      parse_cron_changes(info(), R"({"job_template":{"type":"new","args":[]}})", kNow);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->spec.job.type, "new");
  EXPECT_EQ((*read)->spec.job.queue, "default");
  EXPECT_EQ((*read)->spec.expression, "@daily");
  EXPECT_FALSE(parse_cron_changes(info(), "[]", kNow));
}

}  // namespace
}  // namespace ojs_shm
