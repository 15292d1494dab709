// SPDX-License-Identifier: Apache-2.0
// Who supervises sleeps for up to a minute, and ends at once when asked to.

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "shm/parking.hpp"
#include "tests/unit/engine/at_access.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

TEST(Supervision, whoever_asks_it_to_stop_just_before_it_looks_at_the_doorbell_is_heard) {
  QuietSegment s;
  internal::Attachment& attachment = *s.segment.attachment();
  const shm::Header& header = attachment.segment().header();
  const void *doorbell = header.doorbell.address(), *sleeping = header.sleeping_until_ms.address();
  shm::LocalFlag stop, went_on, ended;
  std::thread supervising([&] {
    const AtAccess asking([&](shm::Access access, shm::Point, const void* word) {
      if (stop.get() && word == sleeping) went_on.set();
      if (access != shm::Access::kLoad || word != doorbell || stop.get()) return;
      stop.set();
      attachment.ring_doorbell();
    });
    attachment.supervise([&] { return stop.get(); }, [](std::string_view) {});
    ended.set();
  });
  EXPECT_TRUE(eventually([&] { return ended.get(); }));
  attachment.ring_doorbell();
  supervising.join();
  EXPECT_FALSE(went_on.get()) << "it worked and lay down once more";
}

/// Where each record is a dead process's, who attaches repairs before it has one. A lane without a
/// record would stay free, and be given back under the hands of the next that takes it.
TEST(Supervision, who_had_to_repair_before_it_could_attach_tells_of_it_from_a_lane_of_its_own) {
  QuietSegment s;
  ASSERT_TRUE(s.admin.set_events(true).ok());
  EventReader reader = s.observer.events({.settle_ms = 0});
  shm::Segment& memory = s.segment.attachment()->segment();
  for (std::uint32_t i = 0; i < memory.geometry().processes; ++i)
    if (i != s.segment.attachment()->process()) memory.process(i).live.store(1, shm::Point::kNone);
  unsigned taken = 0;
  {
    const AtAccess watch([&](shm::Access access, shm::Point point, const void* word) {
      if (access != shm::Access::kWritten || point != shm::Point::kLaneTaken) return;
      ++taken;
      EXPECT_NE(static_cast<const shm::Half*>(word)->load(), 0U) << "it is used, and free";
    });
    const auto joined = Segment::attach(s.where());
    ASSERT_TRUE(joined.ok()) << joined.error().message;
  }
  EXPECT_NE(taken, 0U);
  Event event;
  ASSERT_TRUE(reader.next(event));
  EXPECT_EQ(event.type, "process.repaired");
}

/// Supervises in a thread of its own, until the end.
class Supervising {
 public:
  explicit Supervising(internal::Attachment& attachment, const AtAccess::Act& at_access = {})
      : attachment_(attachment), thread_([this, at_access] {
          std::optional<AtAccess> watched;
          if (at_access) watched.emplace(at_access);
          attachment_.supervise([this] { return stop_.get(); }, [](std::string_view) {});
        }) {}
  ~Supervising() {
    stop_.set();
    attachment_.ring_doorbell();
    thread_.join();
  }

 private:
  internal::Attachment& attachment_;
  shm::LocalFlag stop_;
  std::thread thread_;
};

TEST(Supervision, the_death_of_a_process_that_can_be_seen_from_here_rings_the_doorbell) {
  QuietSegment s;
  internal::Attachment& attachment = *s.segment.attachment();
  const shm::Header& header = attachment.segment().header();
  const std::uint32_t silent = header.doorbell.load();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto joined = Segment::attach(s.where());
    for (;;) ::pause();
  }
  EXPECT_TRUE(eventually([&] { return header.doorbell.load() != silent; }))
      << "it rings when it has come";
  EXPECT_TRUE(attachment.others_attached());
  const Supervising supervising(attachment);
  EXPECT_TRUE(eventually([&] { return header.sleeping_until_ms.load() != 0; }));
  const std::uint32_t before = header.doorbell.load();
  ::kill(child, SIGKILL);
  EXPECT_TRUE(eventually([&] { return header.doorbell.load() != before; }));
  EXPECT_TRUE(eventually([&] { return !attachment.others_attached(); }));
  ::waitpid(child, nullptr, 0);
}

/// No descriptor tells a process of its own end, as none tells of one in another pid namespace.
TEST(Supervision, where_a_death_cannot_be_seen_it_looks_each_50_ms) {
  QuietSegment s;
  internal::Attachment& attachment = *s.segment.attachment();
  const shm::Word& until = attachment.segment().header().sleeping_until_ms;
  const Segment beside = Segment::attach(s.where()).value();
  shm::LocalFlag sleeps, sleeps_long;
  const Supervising supervising(attachment, [&](shm::Access access, shm::Point, const void* word) {
    if (access != shm::Access::kWritten || word != until.address() || until.load() == 0) return;
    if (until.load() > s.now_ms() + 50) sleeps_long.set();
    sleeps.set();
  });
  EXPECT_TRUE(eventually([&] { return sleeps.get(); }));
  EXPECT_FALSE(sleeps_long.get());
}

TEST(Supervision, who_stands_in_leaves_the_seat_to_a_broker) {
  const ScratchDirectory folder;
  const SegmentName where{"seat", folder.path()};
  const Segment segment = Segment::create(where, few_slots(64)).value();
  const shm::Half& seated = segment.attachment()->segment().header().supervisor;
  EXPECT_TRUE(eventually([&] { return seated.load() == segment.attachment()->process() + 1; }));
  Broker broker = Broker::start(where, {}).value();
  std::thread serving([&broker] { EXPECT_TRUE(broker.run([](std::string_view) {}).ok()); });
  EXPECT_TRUE(
      eventually([&] { return seated.load() == broker.segment().attachment()->process() + 1; }));
  broker.stop();
  serving.join();
}

/// Attaching starts a thread, the keeper. Here none is to be had: no address space holds its stack.
TEST(Supervision, without_a_thread_to_be_had_attaching_says_so_and_leaves_nothing) {
  QuietSegment s;
  const ScratchDirectory folder;
  pthread_attr_t usual, endless;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(::pthread_attr_init(&endless), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&endless, std::size_t{1} << 47), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&endless), 0);
  const auto refused = Segment::attach(s.where());
  const auto unmade = Segment::create({"unmade", folder.path()}, few_slots(64));
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().subject, "thread");
  EXPECT_NE(refused.error().message.find("no thread"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(Segment::attach(s.where()));
  ASSERT_FALSE(unmade);
  EXPECT_EQ(unmade.error().subject, "thread");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace ojs_shm::test
