// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ojs_shm::metrics {

/// Whether a client that sent this Accept header prefers OpenMetrics to the text format. Without a
/// preference it gets the text format, which every client reads.
bool wants_openmetrics(std::string_view accept);

}  // namespace ojs_shm::metrics
