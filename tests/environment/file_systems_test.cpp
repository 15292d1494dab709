// SPDX-License-Identifier: Apache-2.0
// Where a segment may live, and what is said when it does not fit there.
#include <sys/statvfs.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/environment/segment_fixture.hpp"

namespace ojs_shm::test {
namespace {

class FileSystems : public SegmentFixture {};

TEST_F(FileSystems, a_tmpfs_of_1_MiB_is_refused_with_size_and_path) {
  Forked child(
      [this](Parent& parent) {
        SegmentOptions options;
        options.size_bytes = 8U << 20;
        const auto made = Segment::create(name, options);
        parent.tell(code_name(made.code()));
        parent.tell(made.ok() ? "" : made.error().message);
        parent.tell(std::filesystem::is_empty(name.dir) ? "empty" : "something was left behind");
        parent.tell(code_name(Segment::attach(name).code()));
        return 0;
      },
      {.tmpfs_at = scratch.path(), .tmpfs_options = "size=1m"});
  OJS_SHM_SKIP_IF_FORBIDDEN(child);
  EXPECT_EQ(child.listen().value_or(""), "no_space");
  const std::string message = child.listen().value_or("");
  EXPECT_NE(message.find(scratch.path()), std::string::npos) << message;
  EXPECT_NE(message.find("make room there, or choose another directory"), std::string::npos)
      << message;
  EXPECT_TRUE(std::regex_search(message, std::regex("8(,?3\\d\\d,?\\d\\d\\d bytes|(\\.0)? MiB)")))
      << message;
  EXPECT_EQ(child.listen().value_or(""), "empty");
  EXPECT_EQ(child.listen().value_or(""), "cannot_attach");
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(FileSystems, a_container_of_64_MiB_holds_100_000_jobs) {
  Forked child(
      [this](Parent& parent) {
        const auto made = Segment::create(name, {});
        if (!made.ok()) return parent.tell(made.error().message), 1;
        auto producer = Producer::attach(name);
        JobSpec spec = job_spec();
        spec.args = R"(["sixty-four bytes of arguments, counted with all of the brackets"])";
        for (int n = 0; n < 100'000; ++n)
          if (const auto id = producer->enqueue(spec); !id.ok())
            return parent.tell("job " + std::to_string(n) + ": " + id.error().message), 1;
        auto worker = Worker::attach(name, {});
        Job job;
        for (int n = 0; n < 100'000; ++n) {
          if (!worker->try_fetch(job).ok() || job.args() != spec.args)
            return parent.tell("lost at " + std::to_string(n)), 1;
          if (const Status acked = worker->ack(job, "{\"ok\":true}"); !acked.ok())
            return parent.tell(acked.error().message), 1;
        }
        for (const Violation& violation : Observer::attach(name)->audit())
          return parent.tell(violation.text), 1;
        parent.tell("all");
        return 0;
      },
      {.tmpfs_at = scratch.path(), .tmpfs_options = "size=64m"});
  OJS_SHM_SKIP_IF_FORBIDDEN(child);
  EXPECT_EQ(child.listen(std::chrono::minutes(2)).value_or("(silence)"), "all");
  EXPECT_EQ(child.wait(), 0);
}

class Places : public SegmentFixture, public testing::WithParamInterface<const char*> {};

TEST_P(Places, a_segment_lives_and_leaves_nothing) {
  const std::filesystem::path place = GetParam();
  if (::access(place.c_str(), W_OK) != 0)
    GTEST_SKIP() << "NOT RUN: " << place << " is not writable here";
  const std::filesystem::path dir = place / ("ojs-shm-test-" + std::to_string(::getpid()));
  std::filesystem::create_directory(dir);
  name.dir = dir;
  create();
  const std::string id = enqueue_one();
  Forked victim(holder());
  const HeldJob held(victim.listen());
  victim.signal(SIGKILL);
  auto worker = Worker::attach(name, {});
  expect_to_fetch(*worker, id, 2);
  expect_clean_audit();
  ASSERT_EQ(list_segments(dir).size(), 1U);
  EXPECT_TRUE(list_segments(dir).front().readable) << list_segments(dir).front().problem;
  EXPECT_EQ(remove_segment(name, Removal::kWithJobs).code(), Code::kInUse)
      << "this process lives in it";
  worker = Error{};
  EXPECT_TRUE(remove_segment(name, Removal::kWithJobs).ok());
  EXPECT_TRUE(std::filesystem::is_empty(dir));
  std::filesystem::remove_all(dir);
}

INSTANTIATE_TEST_SUITE_P(, Places, testing::Values("/dev/shm", "/run", "/var/tmp"),
                         [](const auto& place) {
                           return std::string("place_") + std::to_string(place.index);
                         });

TEST_F(FileSystems, an_observer_maps_read_only) {
  create();
  const std::string id = enqueue_one();
  const auto observer = Observer::attach(name);
  ASSERT_TRUE(observer.ok()) << observer.error().message;
  std::ifstream maps("/proc/self/maps");
  int mappings = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(scratch.path()) == std::string::npos) continue;
    ++mappings;
    EXPECT_NE(line.find(" r--"), std::string::npos) << line;
  }
  EXPECT_GT(mappings, 0);
  EXPECT_EQ(observer->get(id)->id, id);
  EXPECT_TRUE(observer->audit().empty());
  for (const ProcessInfo& process : observer->segment_info().processes)
    EXPECT_NE(process.pid, static_cast<std::uint32_t>(::getpid())) << "an observer is no member";
  EXPECT_EQ(Producer::attach(observer->segment()).ok(), false)
      << "nothing that writes can be made from it";
}

}  // namespace
}  // namespace ojs_shm::test
