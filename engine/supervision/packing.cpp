// SPDX-License-Identifier: Apache-2.0
#include "engine/supervision/packing.hpp"

#include <algorithm>
#include <utility>

#include "engine/tables/ring_look.hpp"
#include "shm/ring_splice.hpp"

namespace ojs_shm::engine {
namespace {
constexpr std::uint32_t kChunksPerLook = 4'096;
// the latter is how often a supervisor wakes anyway
constexpr std::uint64_t kOftenMs = 20, kSeldomMs = 1'000;
}  // namespace

/// Twice what is needed, but when that is more than half of what is free, half of it; and a few in
/// any case, so that a handle's spare chunks start no pass.
std::uint64_t Packer::bound() const {
  const std::uint64_t chunks = store_.segment().geometry().chunks;
  const std::uint64_t left = std::min(left_, chunks);
  return left + std::max(std::min(left, (chunks - left) / 2), chunks / 32);
}

std::uint64_t Packer::look(std::uint64_t now) {
  if (!packing_) {
    const std::uint64_t since = now - std::min(now, looked_ms_);
    if (since < kOftenMs && now >= looked_ms_) return again_ ? looked_ms_ + kOftenMs : 0;
    const std::uint64_t used = actor_.rings().chunks().in_use();
    const std::uint64_t grown = used - std::min(used, std::exchange(seen_, used));
    left_ = std::min(left_, used);
    looked_ms_ = now;
    again_ = grown != 0 && used + grown * kSeldomMs / std::max(since, kOftenMs) >= bound();
    if (used < bound()) return again_ ? now + kOftenMs : 0;
    began_with_ = used;
    freed_ = 0;
  }
  packing_ = pack_some();
  if (packing_) return now;
  if (actor_.rings().has_leaks()) actor_.collect_leaks();
  if (!std::exchange(refused_, false))
    left_ = began_with_ - std::min(began_with_, freed_);  // without what was pushed meanwhile
  seen_ = actor_.rings().chunks().in_use();
  looked_ms_ = now;
  again_ = true;
  return now + kOftenMs;
}

/// Returns whether there is more to do in this pass.
bool Packer::pack_some() {
  shm::Stretch stretch;
  stretch.most = kChunksPerLook;
  stretch.skip = std::exchange(skip_, 0);
  const std::uint32_t from = std::exchange(ring_, 0);
  std::uint32_t at = 0;
  bool more = false;
  each_ring_of_hints(store_, [&](std::uint32_t ring, shm::StillLive live) {
    if (more || at++ < from) return;
    if (shm::has_middle(store_.segment(), ring))
      shm::splice(actor_.rings(), ring, live, stretch);
    else
      stretch.skip = 0;
    more = stretch.most == 0;
    if (more) ring_ = stretch.more ? at - 1 : at, skip_ = stretch.skip;
  });
  freed_ += stretch.freed;
  refused_ = refused_ || stretch.refused;
  return more;
}

}  // namespace ojs_shm::engine
