// SPDX-License-Identifier: Apache-2.0
// A NULL buffer that is said to have room is refused before anything is done.
#include <ojs_shm/ojs_shm.h>
#include <ojs_shm/ojs_shm_proxy.h>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

struct CApiBuffer : testing::Test {
  QuietSegment s;
  ojs_shm_segment* segment = nullptr;
  ojs_shm_proxy* proxy = nullptr;
  char text[4096] = {};

  void SetUp() override {
    ASSERT_EQ(ojs_shm_segment_attach(s.where().name.c_str(), s.where().dir.c_str(), &segment), 0);
    ASSERT_EQ(ojs_shm_proxy_open(segment, &proxy), 0);
  }
  void TearDown() override {
    ojs_shm_close(proxy);
    ojs_shm_close(segment);
  }
};

TEST_F(CApiBuffer, a_refused_fetch_has_fetched_nothing) {
  const std::string id = s.put();
  EXPECT_EQ(ojs_shm_proxy_fetch(proxy, nullptr, nullptr, 1), OJS_SHM_E_INVALID);
  EXPECT_EQ(s.state_of(id), State::kAvailable);
  EXPECT_GT(ojs_shm_proxy_fetch(proxy, nullptr, text, sizeof text), 2);
  EXPECT_EQ(s.state_of(id), State::kActive);
}

TEST_F(CApiBuffer, a_refused_look_leaves_the_ended_to_the_next_one) {
  const std::string id = s.put();
  ASSERT_GE(ojs_shm_proxy_await_end(proxy, id.c_str()), 0);
  s.drain();
  EXPECT_EQ(ojs_shm_proxy_take_ended(proxy, nullptr, 1), OJS_SHM_E_INVALID);
  EXPECT_GT(ojs_shm_proxy_take_ended(proxy, text, sizeof text), 0);
  EXPECT_EQ(text, "[\"" + id + "\"]");
}

TEST_F(CApiBuffer, a_refused_report_registers_no_worker) {
  ojs_shm_worker_report report{};
  report.struct_size = sizeof report;
  report.id = "far";
  EXPECT_EQ(ojs_shm_proxy_report(proxy, &report, nullptr, 1), OJS_SHM_E_INVALID);
  EXPECT_FALSE(s.observer.registered_worker("far").ok());
  EXPECT_GT(ojs_shm_proxy_report(proxy, &report, text, sizeof text), 0);
  EXPECT_TRUE(s.observer.registered_worker("far").ok());
}

TEST_F(CApiBuffer, a_refused_event_is_the_next_one) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  s.put();
  ojs_shm_events* events = nullptr;
  ASSERT_EQ(
      ojs_shm_events_open(segment, OJS_SHM_EVENTS_FROM_START | OJS_SHM_EVENTS_AT_ONCE, &events), 0);
  ASSERT_GT(ojs_shm_next_event(events, text, sizeof text), 0);
  const std::string first = text;
  ojs_shm_close(events);

  ASSERT_EQ(
      ojs_shm_events_open(segment, OJS_SHM_EVENTS_FROM_START | OJS_SHM_EVENTS_AT_ONCE, &events), 0);
  EXPECT_EQ(ojs_shm_next_event(events, nullptr, 1), OJS_SHM_E_INVALID);
  ASSERT_GT(ojs_shm_next_event(events, text, sizeof text), 0);
  EXPECT_EQ(text, first);
  ojs_shm_close(events);
}

}  // namespace
}  // namespace ojs_shm::test
