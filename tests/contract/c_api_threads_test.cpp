// SPDX-License-Identifier: Apache-2.0
//
// Convention 6 of ojs_shm.h: threads share the segment handle and have the other handles for
// themselves. Method: every thread enqueues its own numbers and then takes whatever comes until all
// jobs are done; each number must come once. The ThreadSanitizer lane runs this too.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ojs_shm/ojs_shm.h>

#include "tests/support/process.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::size_t kThreads = 4;
constexpr std::size_t kJobsEach = 200;
constexpr std::int64_t kLongMs = 30'000;

struct Close {
  void operator()(void* handle) const { ojs_shm_close(handle); }
};
template <class H>
using Owned = std::unique_ptr<H, Close>;

template <class H, class Open>
Owned<H> made_by(Open open) {
  H* handle = nullptr;
  EXPECT_EQ(open(&handle), OJS_SHM_OK) << ojs_shm_last_error(nullptr);
  return Owned<H>(handle);
}

class CApiThreads : public testing::Test {
 protected:
  Owned<ojs_shm_producer> producer() const {
    return made_by<ojs_shm_producer>(
        [this](auto** to) { return ojs_shm_producer_open(segment_.get(), to); });
  }
  Owned<ojs_shm_worker> worker() const {
    return made_by<ojs_shm_worker>(
        [this](auto** to) { return ojs_shm_worker_open(segment_.get(), nullptr, to); });
  }
  static Owned<ojs_shm_job> job() {
    return made_by<ojs_shm_job>([](auto** to) { return ojs_shm_job_new(to); });
  }

  ScratchDirectory scratch_;
  Owned<ojs_shm_segment> segment_ = made_by<ojs_shm_segment>([this](auto** to) {
    return ojs_shm_segment_create("threads", scratch_.path().c_str(), nullptr, to);
  });
};

TEST_F(CApiThreads, one_segment_handle_serves_all_threads) {
  std::array<std::vector<std::string>, kThreads> taken;
  {
    std::vector<std::jthread> threads;
    for (std::size_t number = 0; number < kThreads; ++number) {
      threads.emplace_back([this, number, &mine = taken[number]] {
        const auto puts = producer();
        const auto takes = worker();
        const auto held = job();
        for (std::size_t index = 0; index < kJobsEach; ++index) {
          const std::string args = "[" + std::to_string(number * kJobsEach + index) + "]";
          ojs_shm_job_spec spec{};
          spec.struct_size = sizeof spec;
          spec.type = "count";
          spec.args = args.c_str();
          ASSERT_EQ(ojs_shm_enqueue(puts.get(), &spec, nullptr), OJS_SHM_OK)
              << ojs_shm_last_error(puts.get());
        }
        for (std::size_t index = 0; index < kJobsEach; ++index) {
          ASSERT_EQ(ojs_shm_fetch(takes.get(), held.get(), kLongMs), OJS_SHM_OK)
              << ojs_shm_last_error(takes.get());
          ojs_shm_job_fields fields{};
          fields.struct_size = sizeof fields;
          ASSERT_EQ(ojs_shm_job_read(held.get(), &fields), OJS_SHM_OK);
          mine.emplace_back(fields.args.data, fields.args.size);
          ASSERT_EQ(ojs_shm_ack(takes.get(), held.get(), nullptr, 0), OJS_SHM_OK)
              << ojs_shm_last_error(takes.get());
        }
      });
    }
  }
  std::vector<int> times(kThreads * kJobsEach, 0);
  for (const auto& mine : taken) {
    for (const auto& args : mine) ++times.at(std::stoul(args.substr(1)));
  }
  EXPECT_EQ(times, std::vector<int>(kThreads * kJobsEach, 1));
}

TEST_F(CApiThreads, another_thread_may_cancel_and_interrupt) {
  const auto puts = producer();
  const auto takes = worker();
  const auto held = job();
  ojs_shm_job_spec spec{};
  spec.struct_size = sizeof spec;
  spec.type = "long";
  std::array<char, OJS_SHM_ID_SIZE> id{};
  ASSERT_EQ(ojs_shm_enqueue(puts.get(), &spec, id.data()), OJS_SHM_OK);
  ASSERT_EQ(ojs_shm_fetch(takes.get(), held.get(), kLongMs), OJS_SHM_OK);
  {
    const std::jthread canceller(
        [&] { EXPECT_GT(ojs_shm_cancel(puts.get(), id.data(), nullptr, 0), 0); });
    EXPECT_TRUE(eventually([&] { return ojs_shm_cancel_requested(held.get()) == 1; }));
  }
  const std::jthread interrupter([&] { EXPECT_EQ(ojs_shm_interrupt(takes.get()), OJS_SHM_OK); });
  EXPECT_EQ(ojs_shm_fetch(takes.get(), held.get(), -1), OJS_SHM_E_CLOSED);
}

TEST_F(CApiThreads, a_failed_open_is_remembered_for_its_thread_alone) {
  ojs_shm_segment* none = nullptr;
  EXPECT_EQ(ojs_shm_segment_attach("mine", scratch_.path().c_str(), &none),
            OJS_SHM_E_CANNOT_ATTACH);
  const std::string mine = ojs_shm_last_error(nullptr);
  std::jthread([&] {
    EXPECT_EQ(ojs_shm_segment_attach("theirs", scratch_.path().c_str(), &none),
              OJS_SHM_E_CANNOT_ATTACH);
    EXPECT_NE(std::string(ojs_shm_last_error(nullptr)), mine);
  }).join();
  EXPECT_EQ(ojs_shm_last_error(nullptr), mine);
  EXPECT_NE(mine.find("mine"), std::string::npos) << mine;
}

}  // namespace
}  // namespace ojs_shm::test
