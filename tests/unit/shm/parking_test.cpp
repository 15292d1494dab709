// SPDX-License-Identifier: Apache-2.0
// Sleeping on a word of a file, and being woken through another mapping of it, as between
// processes.
#include "shm/parking.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

namespace ojs_shm::test {
namespace {

using shm::Half;
using shm::Point;

constexpr std::uint64_t kLongMs = 60'000;

class Parking : public testing::Test {
 protected:
  Parking() : fd_(::memfd_create("parking", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(fd_, kBytes), 0);
    ours = map(), theirs = map();
  }
  ~Parking() override {
    for (Half* word : {ours, theirs}) ::munmap(word, kBytes);
    ::close(fd_);
  }
  Half* ours;
  Half* theirs;

 private:
  static constexpr std::size_t kBytes = 4096;
  Half* map() {
    void* at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    EXPECT_NE(at, MAP_FAILED);
    return static_cast<Half*>(at);
  }
  int fd_;
};

bool sleeps(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(stat, line);
  const std::size_t name = line.rfind(") ");
  return name != std::string::npos && line[name + 2] == 'S';
}

TEST_F(Parking, a_word_that_has_moved_lets_nobody_sleep) {
  ours->store(2, Point::kNone);
  shm::futex_wait(*ours, 1, kLongMs);
  EXPECT_EQ(ours->load(), 2U);
}

TEST_F(Parking, a_sleep_ends_with_its_time) {
  shm::futex_wait(*ours, 0, 1);
  EXPECT_EQ(ours->load(), 0U);
}

TEST_F(Parking, a_sleeper_is_woken_through_another_mapping) {
  std::atomic<pid_t> id{0};
  std::uint64_t slept_ms = 0;
  std::thread sleeper([&] {
    id = ::gettid();
    const std::uint64_t before = shm::steady_ms();
    while (ours->load() == 0) shm::futex_wait(*ours, 0, kLongMs);
    slept_ms = shm::steady_ms() - before;
  });
  while (id == 0 || !sleeps(id)) ::sched_yield();
  theirs->store(1, Point::kNone);
  shm::futex_wake(*theirs, 1);
  sleeper.join();
  EXPECT_LT(slept_ms, kLongMs);
}

}  // namespace
}  // namespace ojs_shm::test
