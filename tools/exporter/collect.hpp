// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ojs_shm/segment.hpp>

#include "tools/metrics/table.hpp"

namespace ojs_shm::exporter {

/// Which segments a page speaks of.
struct Scope {
  SegmentName where;
  bool all = true;  ///< all segments of the directory; `where.name` says nothing then
  metrics::Options options;
};

/// What there is right now: segments come and go between two scrapes. One that cannot be read has
/// no more than ojs_segment_up 0.
metrics::Page collect(const Scope& scope);

}  // namespace ojs_shm::exporter
