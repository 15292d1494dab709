// SPDX-License-Identifier: Apache-2.0
// Controls: queues that are wrong on purpose, recorded as the engine is, must be found out, and a
// right one must not. One process runs at a time, so the seed repeats a run.

#include <gtest/gtest.h>

#include <iostream>

#include "tests/linearizability/monitor.hpp"
#include "tests/linearizability/recorder.hpp"
#include "tests/linearizability/search.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

/// The number of the first wrong history, and what is wrong with it; 0 when `histories` are right.
unsigned first_wrong(Flaw flaw, unsigned histories, Seeded& random, std::string& finding,
                     bool free_running = false) {
  const auto subject = toy_subject(flaw);
  Recorder recorder(*subject, 3);
  for (unsigned i = 1; i <= histories; ++i) {
    const History history = recorder.record(
        {.seed = random.bits(), .calls = 12, .levels = 3, .free_running = free_running});
    const auto wrong = monitor(history);
    if (!wrong && recorder.strange().empty()) continue;
    const History less = shrink(history, [](const History& h) { return monitor(h).has_value(); });
    finding =
        recorder.strange() + (wrong ? *monitor(less) + "\n" + print(less) : "\n" + print(history));
    return i;
  }
  return 0;
}

TEST(Toys, a_right_queue_is_never_accused) {
  Seeded random;
  std::string finding;
  EXPECT_EQ(first_wrong(Flaw::kNone, 100, random, finding), 0U) << finding;
  EXPECT_EQ(first_wrong(Flaw::kNone, 50, random, finding, true), 0U) << finding;
}

class WrongToys : public testing::TestWithParam<std::pair<Flaw, const char*>> {};

TEST_P(WrongToys, are_caught) {
  Seeded random;
  std::string finding;
  const unsigned caught = first_wrong(GetParam().first, 2000, random, finding);
  EXPECT_NE(caught, 0U);
  std::cout << "history " << caught << ": " << finding;
}

INSTANTIATE_TEST_SUITE_P(Flaws, WrongToys,
                         testing::Values(std::pair(Flaw::kLooksOnce, "looks_once"),
                                         std::pair(Flaw::kTakesNewest, "takes_newest"),
                                         std::pair(Flaw::kForgets, "forgets"),
                                         std::pair(Flaw::kGivesTwice, "gives_twice"),
                                         std::pair(Flaw::kEmptyEarly, "empty_early")),
                         [](const auto& flaw) { return std::string(flaw.param.second); });

/// Of so many histories one must be wrong, when they are judged as if the queue had so many lines.
void caught(Subject& subject, std::optional<std::uint8_t> lines = std::nullopt) {
  Seeded random;
  Recorder recorder(subject, 3);
  Verdict verdict = Verdict::kRight;
  unsigned number = 0;
  for (; verdict == Verdict::kRight && number < 500; ++number) {
    History history =
        recorder.record({.seed = random.bits(), .calls = 3, .everything = true, .elders = 5});
    history.rules.lines = lines.value_or(history.rules.lines);
    verdict = search(history);
  }
  EXPECT_EQ(verdict, Verdict::kWrong);
  std::cout << "history " << number << '\n';
}

/// The engine as it is, judged as if it aged, took turns or had several lines.
TEST(EngineThatOnlySays, it_ages_takes_turns_or_has_lines_is_caught) {
  for (const Choice choice : {Choice::kAging, Choice::kWeighted, Choice::kSharded})
    caught(*engine_that_only_says(choice));
}

TEST(EngineThatOnlySays, QO_08_it_has_one_line_is_caught) {
  caught(*engine_subject(Choice::kSharded), 1);
}

}  // namespace
}  // namespace ojs_shm::test
