// SPDX-License-Identifier: Apache-2.0
#include "tests/relacy/scenes.hpp"
#include "tests/schedules/operations.hpp"

namespace ojs_shm::test {

const std::vector<Scene>& pairs() {
  static const std::vector<Scene> all = [] {
    const auto on_stage = [](const Part& part) {
      return [part](Stage& stage, std::uint32_t self) { part(stage.world(), self); };
    };
    std::vector<Scene> made;
    for (const Named& a : operations())
      for (const Named& b : operations())
        if (&a <= &b)
          made.push_back({std::string(a.name) + " | " + b.name,
                          [](Stage& stage) { three_wait(stage.world()); },
                          {on_stage(a.part), on_stage(b.part)}});
    return made;
  }();
  return all;
}

}  // namespace ojs_shm::test
