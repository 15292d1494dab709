// SPDX-License-Identifier: Apache-2.0
// A member at work in a segment into which a lane writes: between its operations, and between any
// two accesses inside one. Every operation must end, with whatever answer.
//
// Input: number of the image, then steps: 0 a blow | 1 accesses to wait (2), a blow | else an
// operation.
#include <cstring>

#include "tests/fuzz/damage.hpp"
#include "tests/fuzz/lived_in.hpp"
#include "tests/fuzz/surroundings.hpp"
#include "tests/fuzz/visitor.hpp"
#include "tests/fuzz/watch.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::fuzz {
namespace {

using internal::Attachment;

std::byte* base = nullptr;

/// Attached once. Each run begins with another image in the same mapping.
struct Stage {
  std::shared_ptr<Attachment> attachment;
  std::vector<Aim> aims;

  static const Stage& get() {
    static const auto* one = new Stage;
    return *one;
  }

 private:
  Stage() {
    for (const Image& image : images()) aims.emplace_back(image);
    write_file(internal::path_of(segment_name()), images().back().bytes);
    auto opened = Attachment::open(segment_name(), Attachment::Role::kBroker);
    require(opened.ok(), "the image was refused");
    attachment = *opened;
    base = reinterpret_cast<std::byte*>(&attachment->segment().header());
  }
};

void set_scene(const Stage& stage, const Image& image) {
  shm::Segment& segment = stage.attachment->segment();
  std::memcpy(base, image.bytes.data(), image.bytes.size());
  // NO CRASH POINT: no other is there
  segment.process(stage.attachment->process()).live.store(1, shm::Point::kNone);
}

}  // namespace
}  // namespace ojs_shm::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  ojs_shm::fuzz::Stage::get();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ojs_shm::fuzz;
  const Stage& stage = Stage::get();
  begin_run();
  Input input(data, size);
  const std::size_t chosen = input.below(images().size());
  const Aim& aim = stage.aims[chosen];
  set_scene(stage, images()[chosen]);
  Watch watch;
  Visitor visitor(ojs_shm::Segment::of(stage.attachment), images()[chosen].ids);
  for (int steps = 0; steps < 64 && !input.empty(); ++steps) {
    watch.begin_operation();
    switch (input.byte() % 4) {
      case 0: aim.read(input).strike(base); break;
      case 1: {
        const std::uint64_t accesses = input.number(2);
        watch.order(aim.read(input), accesses, base);
        break;
      }
      default: visitor.act(input);
    }
  }
  watch.begin_operation();
  return 0;
}
