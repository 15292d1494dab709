// SPDX-License-Identifier: Apache-2.0
// What a tracer outside finds: static probes in the library, and the trace context of a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ojs_shm/worker.hpp>

#include "tests/support/live_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::HasSubstr;

TEST(Tracing, readelf_lists_every_probe) {
#if __has_include(<sys/sdt.h>)
  const Finished notes = run({"readelf", "-n", OJS_SHM_LIB_DIR "/libojs_shm.so"});
  ASSERT_EQ(notes.exit_code, 0) << notes.err;
  for (const char* name : {"enqueue", "fetch", "ack", "nack", "return", "expire", "drop", "repair"})
    EXPECT_THAT(notes.out, HasSubstr("Provider: ojs_shm\n    Name: " + std::string(name) + "\n"));
#else
  GTEST_SKIP() << "NOT RUN: there is no sys/sdt.h, so no probe is compiled";
#endif
}

TEST(Tracing, traceparent_reaches_the_worker_unchanged_and_is_shown_by_get) {
  const LiveSegment segment;
  const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const std::string meta =
      R"({"traceparent":")" + parent + R"(","tracestate":"ojs=p:8;r:62,other=1","tenant_id":"t"})";
  const Finished done =
      segment.cli({"enqueue"}, R"({"type":"email.send","args":[],"meta":)" + meta + "}\n");
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const std::string id = lines_of(done.out).front();
  EXPECT_EQ(segment.job(id, "meta"), meta);
  EXPECT_EQ(segment.job(id, "meta.traceparent"), parent);
  EXPECT_THAT(segment.cli({"get", id}).out, HasSubstr(parent)) << "also for people";

  auto worker = Worker::attach(segment.where(), {}).value();
  Job job;
  ASSERT_TRUE(worker.try_fetch(job));
  EXPECT_EQ(member(job.extra(), "meta"), meta);
  // the next attempt belongs to the same trace
  ASSERT_TRUE(worker.nack(job, {.code = "broken"}));
  EXPECT_EQ(segment.job(id, "meta"), meta);
}

}  // namespace
}  // namespace ojs_shm::test
