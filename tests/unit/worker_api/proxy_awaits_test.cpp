// SPDX-License-Identifier: Apache-2.0
//
// The one descriptor of a proxy, which tells of ends of jobs and of events beside jobs that may be
// fetched.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ojs_shm/events.hpp>
#include <ojs_shm/proxy.hpp>

#include "engine/tables/job_look.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

struct Awaits : testing::Test {
  QuietSegment s;
  Proxy proxy = Proxy::attach(s.segment).value();

  static bool readable(int fd) {
    pollfd one{fd, POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }
  static void read_all(int fd) {
    eventfd_t count = 0;
    ::eventfd_read(fd, &count);
  }
  std::uint64_t listeners() const { return s_listeners().load(); }
  const shm::Word& s_listeners() const {
    return s.segment.attachment()->store().header().listeners[0];
  }
  bool is_listened() const {
    return (s.segment.attachment()->store().header().telling.load() & engine::kListened) != 0;
  }
  /// Reads what the first call tells in any case, until the thread sleeps.
  void rest(int fd) {
    EXPECT_TRUE(eventually([&] { return readable(fd); }));
    EXPECT_TRUE(eventually([&] {  // a thread that was kept waiting tells again
      read_all(fd);
      return listeners() != 0 && !readable(fd);
    }));
  }
  /// Asks as an event loop does.
  std::vector<std::string> ended(int fd) {
    std::vector<std::string> ids;
    EXPECT_TRUE(eventually([&] {
      if (!readable(fd)) return false;
      read_all(fd);
      ids = proxy.take_ended();
      return !ids.empty();
    }));
    return ids;
  }
  using Ids = std::vector<std::string>;
};

TEST_F(Awaits, the_end_of_a_job_is_told_once) {
  const std::string first = s.put(), second = s.put(), third = s.put();
  const int fd = proxy.await_end(first).value();
  EXPECT_EQ(proxy.await_end(second).value(), fd);
  rest(fd);
  EXPECT_TRUE(proxy.take_ended().empty());
  ASSERT_EQ(s.take(), first);
  EXPECT_TRUE(proxy.take_ended().empty()) << "a start is not an end";
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(ended(fd), Ids{first});
  EXPECT_TRUE(proxy.take_ended().empty());
  ASSERT_TRUE(s.producer.cancel(third).ok());
  ASSERT_TRUE(s.producer.cancel(second).ok());
  EXPECT_EQ(ended(fd), Ids{second});
}

TEST_F(Awaits, an_end_that_nobody_rang_for_is_told_all_the_same) {
  const std::string id = s.put();
  const int fd = proxy.await_end(id).value();
  rest(fd);
  ASSERT_EQ(s.take(), id);
  struct Stopped {};
  try {
    const AtAccess stops([](shm::Access, shm::Point point, const void*) {
      if (point == shm::Point::kCompletionRung) throw Stopped();
    });
    (void)s.worker.ack(s.job);
    ADD_FAILURE() << "it rings";
  } catch (const Stopped&) {}
  EXPECT_EQ(ended(fd), Ids{id});
}

TEST_F(Awaits, jobs_of_a_pool_s_isolated_queue_are_told_that_were_there_before) {
  PoolSettings isolated;
  isolated.queues = {"own"};
  isolated.isolated = true;
  ASSERT_TRUE(s.admin.set_pool("p", isolated).ok());
  const int fd = proxy.await_jobs({"own"}, {}).value();
  s.put({}, "own");
  ASSERT_TRUE(proxy.await_jobs({}, {"p"}).ok());
  EXPECT_TRUE(eventually([&] { return readable(fd); }));
  read_all(fd);
  EXPECT_TRUE(eventually([&] { return readable(fd); })) << "it is still there";
}

TEST_F(Awaits, jobs_of_a_queue_that_another_pool_isolates_are_not_told) {
  PoolSettings both, isolated;
  both.queues = {"own", "shared"};
  isolated.queues = {"own"};
  isolated.isolated = true;
  ASSERT_TRUE(s.admin.set_pool("p", both).ok());
  ASSERT_TRUE(s.admin.set_pool("other", isolated).ok());
  s.put({}, "own");
  const int fd = proxy.await_jobs({}, {"p"}).value();
  FetchRequest request;
  request.pool = "p";
  int told = 0;
  for (int look = 0; look < 50; ++look) {
    pollfd one{fd, POLLIN, 0};
    if (::poll(&one, 1, 10) != 1) continue;
    ++told;
    read_all(fd);
    EXPECT_TRUE(proxy.fetch(request)->empty());
  }
  EXPECT_LT(told, 10);
}

TEST_F(Awaits, one_that_has_ended_or_is_gone_is_told_at_once) {
  const std::string done = s.put();
  s.drain();
  const int fd = proxy.await_end(done).value();
  EXPECT_EQ(ended(fd), Ids{done});
  const std::string never = "018f0000-0000-7000-8000-000000000000";
  EXPECT_EQ(proxy.await_end(never).value(), fd);
  EXPECT_EQ(ended(fd), Ids{never});
  EXPECT_EQ(proxy.await_end("never").code(), Code::kNotFound);
}

TEST_F(Awaits, one_that_is_forgotten_is_not_told) {
  const std::string forgotten = s.put(), awaited = s.put();
  const int fd = proxy.await_end(forgotten).value();
  ASSERT_TRUE(proxy.await_end(awaited).ok());
  rest(fd);
  proxy.forget_end(forgotten);
  s.drain();
  EXPECT_EQ(ended(fd), Ids{awaited});
  EXPECT_TRUE(proxy.take_ended().empty());
}

/// The lane that holds the job may have looked before the wish was there.
TEST_F(Awaits, one_that_is_in_a_lane_s_hands_is_looked_at_again_and_again) {
  const std::string id = s.put();
  ASSERT_EQ(s.take(), id);
  shm::Word& word = s.store().job(engine::find_job(s.store(), *engine::parse_id(id))).control;
  const engine::Control active(word.load());
  word.store(active.to(engine::kSlotSettling, s.actor().lane() + 1).word, shm::Point::kNone);
  const int fd = proxy.await_end(id).value();
  for (int look = 0; look < 3; ++look) {
    EXPECT_TRUE(eventually([&] { return readable(fd); }));
    read_all(fd);
    EXPECT_TRUE(proxy.take_ended().empty());
  }
  word.store(active.word, shm::Point::kNone);
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_EQ(ended(fd), Ids{id});
}

TEST_F(Awaits, an_event_is_told_when_a_reader_gives_it_out) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  EventReader reader = s.observer.events();
  const int fd = proxy.await_events().value();
  rest(fd);
  EXPECT_TRUE(eventually([&] { return is_listened(); }));
  const std::string id = s.put();
  // It may have lain down once more at that moment; while it rests it does not.
  EXPECT_TRUE(eventually([&] {
    s.put();
    return !is_listened();
  })) << "the next one pays nothing";
  Event event;
  bool young = false;
  EXPECT_TRUE(eventually([&] {
    if (!readable(fd)) return false;
    read_all(fd);
    const bool found = reader.next(event);
    young = !found && reader.holds_young();
    return found || young;
  }));
  if (young) {
    EXPECT_TRUE(eventually([&] { return reader.next(event); }));
  }
  EXPECT_EQ(event.type, "job.enqueued");
  EXPECT_EQ(event.job_id, id);
  EXPECT_TRUE(eventually([&] {
    read_all(fd);
    while (reader.next(event)) {}
    return is_listened();
  })) << "it sleeps again";
}

TEST_F(Awaits, who_listens_does_not_switch_events_on) {
  const int fd = proxy.await_events().value();
  rest(fd);
  EXPECT_TRUE(eventually([&] { return is_listened(); }));
  EXPECT_FALSE(s.observer.segment_info().events);
  s.put();
  EXPECT_TRUE(is_listened());
}

TEST_F(Awaits, a_reader_says_that_it_holds_young_events_back) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  s.stop_clock();
  EventReader reader = s.observer.events();
  s.put();
  Event event;
  EXPECT_FALSE(reader.next(event));
  EXPECT_TRUE(reader.holds_young());
  s.move_clock(20);
  EXPECT_TRUE(reader.next(event));
  EXPECT_FALSE(reader.next(event));
  EXPECT_FALSE(reader.holds_young());
}

TEST_F(Awaits, all_kinds_share_the_descriptor_and_none_takes_the_word_from_another) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  const std::string id = s.put();
  const int fd = proxy.await_end(id).value();
  rest(fd);
  ASSERT_EQ(s.take(), id);
  ASSERT_TRUE(s.worker.ack(s.job).ok());
  EXPECT_TRUE(eventually([&] { return readable(fd); }));
  EXPECT_EQ(proxy.await_jobs({"other"}).value(), fd) << "which empties the descriptor";
  EXPECT_EQ(proxy.await_events().value(), fd);
  EXPECT_EQ(ended(fd), Ids{id});
  read_all(fd);
  s.put(1, "other");
  EXPECT_TRUE(eventually([&] {
    if (readable(fd)) read_all(fd);
    const auto jobs = proxy.fetch({.queues = {"other"}});
    return jobs.ok() && jobs->size() == 1;
  }));
}

TEST_F(Awaits, what_was_told_before_another_wish_is_told_again) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  const int fd = proxy.await_events().value();
  s.put();
  EXPECT_TRUE(eventually([&] { return readable(fd); }));
  EXPECT_EQ(proxy.await_jobs({"other"}).value(), fd) << "which empties the descriptor";
  EXPECT_TRUE(eventually([&] { return readable(fd); }));
}

TEST_F(Awaits, one_that_awaits_nothing_any_more_sleeps_on) {
  ASSERT_TRUE(s.admin.set_events(true).ok());
  const int fd = proxy.await_events().value();
  rest(fd);
  EXPECT_EQ(proxy.await_events(false).value(), fd);
  EXPECT_TRUE(eventually([&] { return listeners() == 0; }));
  s.put();
  EXPECT_FALSE(readable(fd));
}

}  // namespace
}  // namespace ojs_shm::test
