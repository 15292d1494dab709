// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/segment.hpp>

#include "tools/top/view.hpp"

namespace ojs_shm::top {

struct Options {
  SegmentName where;
  std::string post_mortem;  ///< a copy of a segment's file; empty: a segment of `where`
  bool once = false, batch = false, json = false, admin = false, no_color = false;
  std::uint64_t samples = 0;  ///< of --batch; 0: without end
  std::uint64_t interval_ms = 1000;
  View view = View::kQueues;
  Subject subject;
};

/// Opens what the options name. Throws shell::Refusal.
Observer open_observer(const Options& options);

/// Looks and prints, again and again; for scripts. Returns an exit status.
int print_samples(const Options& options);
/// Shows it on a terminal, until a key ends it. Returns an exit status. Throws shell::Refusal.
int watch(const Options& options);
/// The sample as one JSON object, docs/top_sample.schema.json.
std::string print_sample(const Sample& sample);

}  // namespace ojs_shm::top
