// SPDX-License-Identifier: Apache-2.0
//
// Which events a reader gives out, and where it goes on when another has read before it.
#include <gmock/gmock.h>

#include <ojs_shm/events.hpp>
#include <ojs_shm/proxy.hpp>

#include "engine/observing/events.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<Event> all(EventReader& reader) {
  std::vector<Event> events;
  for (Event event; reader.next(event);) events.push_back(event);
  return events;
}
std::vector<std::string> ids(const std::vector<Event>& events) {
  std::vector<std::string> names;
  for (const Event& event : events) names.push_back(event.id);
  return names;
}
std::vector<std::string> types(EventReader&& reader) {
  std::vector<std::string> names;
  for (const Event& event : all(reader)) names.push_back(event.type);
  return names;
}

struct EventChoice : testing::Test {
  EventChoice() { EXPECT_TRUE(s.admin.set_events(true).ok()); }

  EventReader behind(const Event& event, bool position = true) {
    EventOptions options{.settle_ms = 0};
    options.after = event.id;
    if (position) options.after_position = event.position;
    return s.observer.events(options);
  }
  EventReader chosen(EventOptions options) {
    options.from_start = true;
    options.settle_ms = 0;
    return s.observer.events(options);
  }
  std::uint64_t kept() {
    return std::uint64_t{s.store().event_pages.size()} * engine::kEventsPerPage;
  }
  void tell(std::uint64_t count, const std::string& id) {
    for (std::uint64_t i = 0; i < count; ++i)
      ASSERT_TRUE(s.producer.reprioritize(id, static_cast<std::int64_t>(told_++ % 2)).ok());
  }
  QuietSegment s;
  EventReader reader = s.observer.events({.settle_ms = 0});

 private:
  std::uint64_t told_ = 0;
};

TEST_F(EventChoice, begins_behind_each_event_that_is_still_kept) {
  s.put(2);
  s.take();
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  const std::vector<Event> events = all(reader);
  ASSERT_THAT(events, SizeIs(3));
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].position, i + 1);
    for (const bool position : {true, false}) {
      EventReader again = behind(events[i], position);
      EXPECT_FALSE(again.resumed()) << "no event was asked for yet";
      EXPECT_EQ(ids(all(again)),
                ids({events.begin() + static_cast<std::ptrdiff_t>(i) + 1, events.end()}));
      EXPECT_TRUE(again.resumed());
      EXPECT_EQ(again.lost(), 0U);
      EXPECT_EQ(again.position(), i + 1 == events.size() ? 0 : events.size());
    }
  }
}

TEST_F(EventChoice, counts_what_came_behind_and_is_kept_no_more) {
  const std::string id = s.put(2);
  tell(1, id);
  const Event last = all(reader).back();
  const std::uint64_t told = kept() * 2 + 5;
  tell(told, id);
  EventReader again = behind(last);
  const std::vector<Event> events = all(again);
  EXPECT_FALSE(again.resumed());
  EXPECT_EQ(events.size() + again.lost(), told);
  EXPECT_GT(again.lost(), kept() / 2);
  EXPECT_EQ(events.back().position, last.position + told);
  EventReader unsure = behind(last, false);
  EXPECT_THAT(all(unsure), SizeIs(events.size()));
  EXPECT_FALSE(unsure.resumed());
  EXPECT_EQ(unsure.lost(), 0U) << "it cannot know";
  s.take();
  EXPECT_THAT(all(again), SizeIs(1));
  EXPECT_EQ(again.lost() + events.size(), told) << "and counts on from there";
}

TEST_F(EventChoice, leaves_out_what_is_older_though_a_quiet_handle_keeps_it) {
  const std::string id = s.put(2);  // by a handle that tells nothing else
  s.move_clock(kSecond);
  ASSERT_TRUE(s.admin.producer().reprioritize(id, 1).ok());
  const std::vector<Event> before = all(reader);
  ASSERT_THAT(before, SizeIs(2));
  const std::uint64_t told = kept() * 2;
  for (std::uint64_t i = 0; i < told; ++i)
    ASSERT_TRUE(s.admin.producer().reprioritize(id, static_cast<std::int64_t>(i % 2)).ok());
  EventReader from_start = chosen({});
  EXPECT_EQ(all(from_start).front().id, before[0].id) << "it is kept";
  EventReader again = behind(before[1]);
  const std::vector<Event> events = all(again);
  EXPECT_NE(events.front().id, before[0].id);
  EXPECT_EQ(events.size() + again.lost(), told);
}

TEST_F(EventChoice, counts_also_when_the_event_itself_is_kept) {
  const std::string id = s.put(2);  // by a handle that tells nothing else
  const Event first = all(reader).front();
  const std::uint64_t told = kept() * 2;
  for (std::uint64_t i = 0; i < told; ++i)
    ASSERT_TRUE(s.admin.producer().reprioritize(id, static_cast<std::int64_t>(i % 2)).ok());
  EventReader again = behind(first);
  const std::vector<Event> events = all(again);
  EXPECT_TRUE(again.resumed());
  EXPECT_EQ(events.size() + again.lost(), told);
  EXPECT_GT(again.lost(), 0U);
}

TEST_F(EventChoice, waits_for_an_event_that_is_younger_than_the_time_to_settle) {
  s.stop_clock();
  s.put();
  const Event first = all(reader).front();
  s.put();
  EventReader patient = s.observer.events({.settle_ms = kMinute, .after = first.id});
  EXPECT_THAT(all(patient), IsEmpty());
  EXPECT_TRUE(patient.holds_young());
  s.move_clock(2 * kMinute);
  EXPECT_THAT(all(patient), SizeIs(1));
  EXPECT_TRUE(patient.resumed());
  EXPECT_EQ(patient.lost(), 0U);
}

TEST_F(EventChoice, behind_an_event_of_another_segment_is_all_that_is_kept) {
  QuietSegment other;
  ASSERT_TRUE(other.admin.set_events(true).ok());
  EventReader there = other.observer.events({.settle_ms = 0});
  other.put();
  const Event foreign = all(there).front();
  s.put();
  s.put();
  EventReader again = behind(foreign, false);
  EXPECT_THAT(all(again), SizeIs(2));
  EXPECT_FALSE(again.resumed());
}

TEST_F(EventChoice, takes_an_event_with_the_texts_behind_it_as_one) {
  const std::string long_id = "a-worker-whose-id-needs-more-room-than-an-event-has";
  Proxy proxy = Proxy::attach(s.segment).value();
  ASSERT_TRUE(proxy.report({.id = long_id, .registers = true}).ok());
  std::vector<Event> events = all(reader);
  s.move_clock(kSecond);
  s.put();
  std::ranges::move(all(reader), std::back_inserter(events));
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].worker_id, long_id);
  EventReader again = behind(events[0]);
  EXPECT_EQ(ids(all(again)), ids({events[1]}));
  EXPECT_EQ(again.lost(), 0U);
  const std::uint64_t told = kept() * 2;
  tell(told, events[1].job_id);
  EventReader late = behind(events[0]);
  const std::size_t got = all(late).size();
  EXPECT_TRUE(late.resumed()) << "its handle tells nothing else";
  EXPECT_EQ(got + late.lost(), told + 1) << "its texts are no loss, nor make one smaller";
}

TEST_F(EventChoice, by_type_queue_job_type_of_job_and_tenant) {
  const std::string plain = s.put(1, "mail");
  JobSpec of_tenant = spec_of(2, "bills");
  of_tenant.type = "print.bill";
  of_tenant.extra = R"({"meta":{"tenant_id":"acme"}})";
  const std::string bill = s.put(of_tenant);
  ASSERT_TRUE(s.producer.reprioritize(bill, 0).ok());
  ASSERT_TRUE(s.admin.set_queue("mail", {.paused = true}).ok());
  EXPECT_THAT(types(chosen({.types = {"job.*"}})), ElementsAre("job.enqueued", "job.enqueued"));
  EXPECT_THAT(types(chosen({.types = {"priority.changed", "queue.paused"}})),
              ElementsAre("priority.changed", "queue.paused"));
  EXPECT_THAT(types(chosen({.queues = {"mail"}})), ElementsAre("job.enqueued", "queue.paused"));
  EXPECT_THAT(types(chosen({.jobs = {bill}})), ElementsAre("job.enqueued", "priority.changed"));
  EXPECT_THAT(types(chosen({.types = {"job.enqueued"}, .jobs = {bill, plain}})), SizeIs(2));
  EXPECT_THAT(types(chosen({.job_types = {"print.bill"}})),
              ElementsAre("job.enqueued", "priority.changed"));
  EXPECT_THAT(types(chosen({.tenant = "acme"})), ElementsAre("job.enqueued", "priority.changed"));
  EXPECT_THAT(types(chosen({.tenant = "other"})), IsEmpty());
  EventReader one = chosen({.types = {"queue.paused"}});
  EXPECT_EQ(all(one).front().position, 4U) << "of all that were told";
}

TEST_F(EventChoice, with_what_is_no_type_or_no_id_is_refused) {
  EXPECT_TRUE(check(EventOptions{}).ok());
  EXPECT_TRUE(check({.types = {"job.*", "queue.paused", "*"}}).ok());
  for (const char* type : {"", "job", "job.", "jobs.*", "priority.changd"}) {
    const Status refused = check({.types = {"job.failed", type}});
    ASSERT_FALSE(refused.ok()) << type;
    EXPECT_EQ(refused.error().code, Code::kInvalid);
    EXPECT_THAT(refused.error().message, HasSubstr("'" + std::string(type) + "'; types are job."));
  }
  for (const char* id : {"x", "evt_", "evt_0190a5b0-0000-4000-8000-000000000001"})
    EXPECT_FALSE(check({.after = id}).ok()) << id;
  EXPECT_TRUE(check({.after = "evt_0190a5b0-0000-7000-8000-000000000001"}).ok());
}

}  // namespace
}  // namespace ojs_shm::test
