// SPDX-License-Identifier: Apache-2.0
// A peer cuts the segment's file short under the living. None may be left hanging: one that touches
// what is gone ends with SIGBUS, who does not goes on, and a process that comes later is told.
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/environment/segment_fixture.hpp"

namespace ojs_shm::test {
namespace {

constexpr int kBusError = 128 + SIGBUS, kGoesOn = 3;

class Truncation : public SegmentFixture {
 protected:
  void SetUp() override {
    create();
    whole_ = std::filesystem::file_size(path());
  }
  std::string path() const { return scratch / ("ojs-shm." + name.name); }
  void leave(std::uintmax_t bytes) {
    ASSERT_EQ(::truncate(path().c_str(), static_cast<off_t>(bytes)), 0);
    std::ofstream(scratch / "cut");
  }
  /// The call that cuts it has returned: the file is short a moment before the pages are gone.
  bool cut() const { return std::filesystem::exists(scratch / "cut"); }

  /// The number of the system call in which the child's first thread is; empty when the kernel does
  /// not tell.
  static std::string call_of(const Forked& child) {
    std::ifstream file("/proc/" + std::to_string(child.pid()) + "/syscall");
    std::string number;
    file >> number;
    return number;
  }
  /// Asleep on a futex.
  static bool parked(const Forked& child) { return call_of(child) == std::to_string(SYS_futex); }

  void expect_that_others_are_told() {
    for (const auto& attached : {Segment::attach(name), Segment::observe(name)}) {
      ASSERT_FALSE(attached.ok());
      EXPECT_EQ(attached.code(), Code::kCannotAttach);
      EXPECT_NE(attached.error().message.find(path()), std::string::npos)
          << attached.error().message;
    }
    // Nothing in an empty file says that it was a segment, so a person has to remove it.
    const bool nothing_left = std::filesystem::file_size(path()) == 0;
    EXPECT_EQ(remove_segment(name, Removal::kForced).code(),
              nothing_left ? Code::kOtherFormat : Code::kOk);
    for (const std::string& file : {path(), path() + ".lock"}) std::filesystem::remove(file);
    create();
    enqueue_one();
    expect_clean_audit();
  }

  std::uintmax_t whole_ = 0;
};

TEST_F(Truncation, who_works_ends_with_sigbus) {
  Forked member([this](Parent& parent) {
    auto producer = Producer::attach(name);
    auto worker = Worker::attach(name, {});
    parent.tell("works");
    Job job;
    for (;;) {
      if (!producer->enqueue(job_spec()).ok()) return 4;
      if (!worker->try_fetch(job).ok() || !worker->ack(job).ok()) return 4;
    }
  });
  ASSERT_EQ(member.listen().value_or(""), "works");
  leave(4096);
  EXPECT_EQ(member.wait(), kBusError);
  expect_that_others_are_told();
}

TEST_F(Truncation, a_broker_that_sleeps_ends_when_it_is_asked_to) {
  static Broker* seat = nullptr;
  Forked broker([this](Parent& parent) {
    auto started = Broker::start(name, small_options());
    if (!started.ok()) return parent.tell(started.error().message), 1;
    seat = &*started;
    std::signal(SIGTERM, [](int) { seat->stop(); });
    parent.tell("sits");
    return seat->run([](std::string_view) {}).ok() ? kGoesOn : 1;
  });
  ASSERT_EQ(broker.listen().value_or(""), "sits");
  if (call_of(broker).empty())
    GTEST_SKIP() << "NOT RUN: the kernel does not say in which call a process is";
  ASSERT_TRUE(eventually([&] { return parked(broker); }));
  leave(0);
  broker.signal(SIGTERM);
  EXPECT_EQ(broker.wait(), kBusError);
  expect_that_others_are_told();
}

/// What is left of the file.
enum class Left { kNothing, kFirstPage, kHalf, kAllButTheLastPage };

class TruncationTo : public Truncation, public testing::WithParamInterface<Left> {
 protected:
  void leave_what_is_said() {
    constexpr std::uintmax_t kPage = 4096;
    const std::uintmax_t sizes[] = {0, kPage, whole_ / 2, whole_ - kPage};
    leave(sizes[static_cast<std::size_t>(GetParam())]);
  }
};

TEST_P(TruncationTo, a_fetch_that_sleeps_comes_to_an_end) {
  Forked member([this](Parent& parent) {
    auto worker = Worker::attach(name, {});
    Job job;
    parent.tell("fetches");
    while (!cut())
      if (const Code code = worker->fetch(job, std::chrono::seconds(2)).code();
          code != Code::kTimeout)
        return 4;
    return worker->fetch(job, std::chrono::milliseconds(200)).code() == Code::kTimeout ? kGoesOn
                                                                                       : 5;
  });
  ASSERT_EQ(member.listen().value_or(""), "fetches");
  if (call_of(member).empty())
    GTEST_SKIP() << "NOT RUN: the kernel does not say in which call a process is";
  ASSERT_TRUE(eventually([&] { return parked(member); }));
  leave_what_is_said();
  const int end = member.wait();
  switch (GetParam()) {
    case Left::kNothing:
    case Left::kFirstPage: EXPECT_EQ(end, kBusError); break;
    case Left::kHalf:
      EXPECT_TRUE(end == kBusError || end == kGoesOn) << end;
      break;  // as its keeper has to look or not
    case Left::kAllButTheLastPage: EXPECT_EQ(end, kGoesOn); break;
  }
  expect_that_others_are_told();
}

TEST_P(TruncationTo, an_observer_that_reads_comes_to_an_end) {
  const std::string id = enqueue_one();
  Forked reader([this, id](Parent& parent) {
    const auto observer = Observer::attach(name);
    auto read = [&] {
      return observer->queues().size() == 1 && observer->list({}).size() == 1 &&
             observer->get(id).ok() && !observer->segment_info().pools.empty() &&
             observer->scheduling_stats().queues.size() == 1;
    };
    if (!read()) return 4;
    parent.tell("reads");
    while (!cut())
      if (!read()) return 5;
    return read() ? kGoesOn : 5;
  });
  ASSERT_EQ(reader.listen().value_or(""), "reads");
  leave_what_is_said();
  const bool touched = GetParam() != Left::kAllButTheLastPage;
  EXPECT_EQ(reader.wait(), touched ? kBusError : kGoesOn);
  expect_that_others_are_told();
}

constexpr const char* kNames[] = {"nothing", "the_first_page", "half", "all_but_the_last_page"};
INSTANTIATE_TEST_SUITE_P(, TruncationTo,
                         testing::Values(Left::kNothing, Left::kFirstPage, Left::kHalf,
                                         Left::kAllButTheLastPage),
                         [](const auto& left) {
                           return kNames[static_cast<std::size_t>(left.param)];
                         });

}  // namespace
}  // namespace ojs_shm::test
