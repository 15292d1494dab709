// SPDX-License-Identifier: Apache-2.0
#include "engine/enqueue/known_names.hpp"

namespace ojs_shm::engine {

using shm::Point;

KnownNames::KnownNames(Store& store, std::uint32_t lane)
    : Fetcher(store, lane),
      ranks_(store.convention()),
      default_rank_(ranks_.of(info(store.convention()).default_priority).value_or(0)) {}

std::uint32_t KnownNames::ensure_queue(std::string_view name, bool make) {
  if (last_queue_ != kNoIndex && name == last_queue_name_) return last_queue_;
  const std::uint64_t hash = Store::hash_name(name);
  for (std::uint32_t i = 0; i < store_.max_queues(); ++i) {
    QueueRecord& queue = store_.queue(i);
    std::uint64_t found = queue.name_hash.load();
    if (found == 0 && !make) break;
    if (found == 0) queue.name_hash.cas(found, hash, Point::kSetNamed);
    if (found != 0 && found != hash) continue;
    // any lane that knows the name may write it: all would write the same bytes
    if (queue.name_length.load() == 0) {
      order().follow_aging(queue);
      queue.created.cas_once(0, store_.now_ms(), Point::kSetNamed);
      shm::copy_in(queue.name, name.data(),
                   name.size());  // NO CRASH POINT: without its length a name is none
      queue.name_length.store(name.size(), Point::kSetNamed);  // PAIR queue-name
    }
    last_queue_ = i;
    last_queue_name_ = name;
    return i;
  }
  return kNoIndex;
}

}  // namespace ojs_shm::engine
