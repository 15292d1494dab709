// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/fetch/fetcher.hpp"
#include "engine/rules/names.hpp"
#include "engine/tables/type_ranks.hpp"

namespace ojs_shm::engine {

/// What a handle looks up by names, and keeps for the next job: its queue, its type, the rank of
/// jobs that name none.
class KnownNames : protected Fetcher {
 protected:
  KnownNames(Store& store, std::uint32_t lane);
  ~KnownNames() override = default;

  /// The queue of that name, if need be and wanted made; kNoIndex: none, or the table is full.
  std::uint32_t ensure_queue(std::string_view name, bool make = true);
  /// The queue this handle used last, if it has that name; else kNoIndex.
  std::uint32_t known_queue(std::string_view name) const {
    return same_name(name, last_queue_name_) ? last_queue_ : kNoIndex;
  }
  /// Whether this handle has just seen the type and found it well formed.
  bool known_type(std::string_view type) const {
    return !type.empty() && same_name(type, last_type_);
  }
  void know_type(std::string_view type) { last_type_ = type; }
  const Ranks& ranks() const { return ranks_; }  ///< of the segment's convention
  /// The rank of a job that names none: its type's, else the convention's.
  std::uint8_t default_rank(std::string_view type) const {
    if (store_.type_defaults[0].hash.load() != 0)
      if (const auto rank = type_rank(store_, type)) return *rank;
    return default_rank_;
  }

 private:
  Ranks ranks_;
  std::uint8_t default_rank_;
  std::uint32_t last_queue_ = kNoIndex;
  std::string last_queue_name_, last_type_;
};

}  // namespace ojs_shm::engine
