// SPDX-License-Identifier: Apache-2.0
// The real engine on a memory that is as weak as C++ allows: threads of Relacy, which keeps what
// each of them may see, under schedules thrown with dice and under all schedules with one or two
// preemptions. Each run ends with the audit and the promises of tests/schedules. Then the same with
// one order weakened, which some scene must notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <stdexcept>

#include "tests/relacy/scenes.hpp"

namespace ojs_shm::test {
namespace {

bool is_form(std::string_view form) {
  const char* text = std::getenv("OJS_SHM_RELACY_FORM");
  return text != nullptr && text == form;
}
std::uint64_t by_form(std::uint64_t by_itself, std::uint64_t quick, std::uint64_t thorough) {
  return is_form("short") ? quick : is_form("long") ? thorough : by_itself;
}
std::uint64_t first_run() {
  const char* text = std::getenv("OJS_SHM_RELACY_FROM");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

const Scene& scene_named(std::string_view name) {
  const auto found = std::find_if(scenes().begin(), scenes().end(),
                                  [name](const Scene& s) { return s.name == name; });
  if (found == scenes().end()) throw std::invalid_argument("no scene " + std::string(name));
  return *found;
}

/// The last accesses before a wrong verdict.
std::string end_of(const std::string& history) {
  constexpr std::size_t kMost = 12'000;
  const std::string all = history.substr(0, history.find("\nthread 0:"));
  return all.size() <= kMost ? all : all.substr(all.find('\n', all.size() - kMost));
}

template <class Named>
std::string test_name(const testing::TestParamInfo<Named>& info) {
  std::string name;
  for (const char letter : std::string_view(info.param.name))
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0)
      name += letter;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  return name;
}

Stage& stage() {
  static Stage one;
  return one;
}

class Dice : public testing::TestWithParam<Scene> {};

TEST_P(Dice, keep_the_promises) {
  const Played played = play(play_of(stage(), GetParam()), first_run(),
                             by_form(2'000, 200, 10'000) / GetParam().rarer);
  std::cout << GetParam().name << ": runs " << first_run() << " to " << played.last << ", "
            << played.accesses << " shared accesses, " << played.old_values
            << " loads of an old value\n";
  EXPECT_EQ(played.failure, "") << "in run " << played.last << '\n' << end_of(played.history);
}

/// Relacy's total order is stronger than that of C++, so what does not need one must do without.
class AcquireLoads : public testing::TestWithParam<Scene> {};

TEST_P(AcquireLoads, suffice) {
  Play weaker = play_of(stage(), GetParam());
  weaker.weaken = [](const MemoryAccess& access) {
    const bool total =
        access.kind == MemoryAccess::Kind::kLoad && access.order == std::memory_order_seq_cst;
    return total ? std::memory_order_acquire : access.order;
  };
  const Played played = play(weaker, first_run(), by_form(2'000, 200, 10'000) / GetParam().rarer);
  std::cout << GetParam().name << ": runs " << first_run() << " to " << played.last << ", "
            << played.accesses << " shared accesses, " << played.old_values
            << " loads of an old value\n";
  EXPECT_EQ(played.failure, "") << "in run " << played.last << '\n' << end_of(played.history);
}

/// Operations join by their entry in tests/schedules.
TEST(Pairs, keep_the_promises) {
  Played all;
  for (const Scene& pair : pairs()) {
    const Played played = play(play_of(stage(), pair), first_run(), by_form(1'000, 100, 5'000));
    all.accesses += played.accesses, all.old_values += played.old_values;
    ASSERT_EQ(played.failure, "") << pair.name << ", in run " << played.last << '\n'
                                  << end_of(played.history);
  }
  std::cout << pairs().size() << " pairs: " << all.accesses << " shared accesses, "
            << all.old_values << " loads of an old value\n";
}

INSTANTIATE_TEST_SUITE_P(Scenes, Dice, testing::ValuesIn(scenes()), test_name<Scene>);

class EverySchedule : public testing::TestWithParam<Scene> {};

TEST_P(EverySchedule, keeps_the_promises) {
  const std::uint64_t most = by_form(10'000, 500, 50'000) / GetParam().rarer;
  for (unsigned preemptions = 1; preemptions <= 2; ++preemptions) {
    Play bounded = play_of(stage(), GetParam());
    bounded.preemptions = preemptions;
    const Played played = play(bounded, 1, most);
    std::cout << GetParam().name << ": " << (played.complete ? "all " : "the first ") << played.last
              << " schedules with up to " << preemptions << " preemptions, " << played.old_values
              << " loads of an old value\n";
    ASSERT_EQ(played.failure, "") << end_of(played.history);
    if (!played.complete) break;
  }
}

template <class Condition>
std::vector<Scene> scenes_where(Condition condition) {
  std::vector<Scene> found;
  std::copy_if(scenes().begin(), scenes().end(), std::back_inserter(found), condition);
  return found;
}
INSTANTIATE_TEST_SUITE_P(Scenes, AcquireLoads,
                         testing::ValuesIn(scenes_where([](const Scene& scene) {
                           return !scene.needs_total_order;
                         })),
                         test_name<Scene>);
// With three threads there are too many schedules.
INSTANTIATE_TEST_SUITE_P(Scenes, EverySchedule,
                         testing::ValuesIn(scenes_where([](const Scene& scene) {
                           return scene.parts.size() == 2;
                         })),
                         test_name<Scene>);

class WeakOrder : public testing::TestWithParam<Mutant> {};

TEST_P(WeakOrder, is_noticed) {
  const Scene& scene = scene_named(GetParam().scene);
  const Played played =
      play(play_of(stage(), scene, &GetParam()), first_run(), by_form(20'000, 10'000, 200'000));
  ASSERT_NE(played.failure, "") << "not in " << played.last << " runs of " << scene.name;
  EXPECT_NE(played.history, "") << "run " << played.last
                                << " was another one when it was played again";
  std::cout << GetParam().name << ": noticed in run " << played.last << " of " << scene.name << ": "
            << played.failure.substr(0, played.failure.find(';')) << '\n';
}

INSTANTIATE_TEST_SUITE_P(Mutants, WeakOrder, testing::ValuesIn(mutants()), test_name<Mutant>);

}  // namespace
}  // namespace ojs_shm::test
