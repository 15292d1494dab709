// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/tables/store.hpp"

// Registered workers, read from their records.

namespace ojs_shm::engine {

/// A copy of what a record says of its worker.
struct WorkerFacts {
  WorkerKey key;
  std::string id, details;
  WorkerOrder order = WorkerOrder::kRunning;
  std::uint32_t concurrency = 0, active = 0;
  std::uint64_t pool = 0;  ///< hash of its name; 0: none
  std::uint64_t traits = 0, registered_at = 0, last_sign = 0, returned = 0, silence_ms = 0;
  bool gone = false;    ///< it has ended
  bool died = false;    ///< with its process
  bool native = false;  ///< a handle of the segment is this worker
};

/// Nothing when no worker has the place, or it does not stand still.
std::optional<WorkerFacts> look_at_worker(const Store& store, std::uint32_t place);
/// The living worker of that id; none: there is none.
WorkerKey find_worker(const Store& store, std::string_view id);
/// The id of the worker whose jobs carry the word, also after its end; empty: it is not known any
/// more.
std::string worker_id_of(const Store& store, WorkerKey key);
/// How many jobs it has, by a walk over all slots.
std::uint64_t jobs_of_worker(const Store& store, WorkerKey key);
/// Of all workers at once, by WorkerKey::word.
std::unordered_map<std::uint32_t, std::uint32_t> jobs_of_workers(const Store& store);
/// Whether the worker has not been ended. Three loads.
bool worker_lives(const Store& store, WorkerKey key);

/// As a record's control word has it of an id.
inline std::uint32_t worker_hash(std::string_view id) {
  const std::uint64_t hash = Store::hash_name(id);
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

/// The living worker of that id, also one that is being ended, or none.
WorkerKey named_worker(const Store& store, std::uint32_t hash, std::string_view id);
/// A text of a record.
template <std::size_t kWords>
std::string text_in(const std::uint64_t (&words)[kWords], const Word& length) {
  std::string text(std::min<std::uint64_t>(length.load(), sizeof words), '\0');
  shm::copy_out(text.data(), words, text.size());
  return text;
}

}  // namespace ojs_shm::engine
