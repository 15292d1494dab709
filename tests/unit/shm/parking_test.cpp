// SPDX-License-Identifier: Apache-2.0
// Sleeping on a word of a file, and being woken through another mapping of it, as between
// processes.
#include "shm/parking.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <future>

#include "tests/support/process.hpp"

namespace ojs_shm::test {
namespace {

using shm::Half;

class Parking : public testing::Test {
 protected:
  Parking() : fd_(::memfd_create("parking", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(fd_, kBytes), 0);
    here = map(), there = map();
  }
  ~Parking() override {
    for (Half* word : {here, there}) ::munmap(word, kBytes);
    ::close(fd_);
  }
  /// Whether a thread that sleeps on `here` gets up; meanwhile `look` is called again and again.
  bool gets_up(std::uint32_t expected, std::uint64_t timeout_ms, auto look) {
    const auto sleeper =
        std::async(std::launch::async, [=, this] { shm::futex_wait(*here, expected, timeout_ms); });
    const bool up = eventually([&] {
      look();
      return sleeper.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    while (sleeper.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
      shm::futex_wake(*here, 1);  // so that a failure ends
    return up;
  }
  static constexpr std::uint64_t kLongMs = 60'000;  ///< longer than eventually() waits
  Half *here, *there;

 private:
  static constexpr std::size_t kBytes = 4096;
  Half* map() {
    void* at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    EXPECT_NE(at, MAP_FAILED);
    return static_cast<Half*>(at);
  }
  int fd_;
};

TEST_F(Parking, a_word_that_has_moved_lets_no_thread_sleep) {
  here->store(2, shm::Point::kNone);
  EXPECT_TRUE(gets_up(1, kLongMs, [] {}));
}

TEST_F(Parking, a_sleep_ends_with_its_time) {
  EXPECT_TRUE(gets_up(0, 1, [] {}));
}

TEST_F(Parking, a_sleeper_is_woken_through_another_mapping) {
  EXPECT_TRUE(gets_up(0, kLongMs, [this] { shm::futex_wake(*there, 1); }));
}

}  // namespace
}  // namespace ojs_shm::test
