// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <ojs_shm/observer.hpp>

namespace ojs_shm {

/// The longest step of the segment's clock between two samples of its supervisor, in ms, of the
/// last 64 samples; 0 when there are not two. A sample is taken each second: a step that is much
/// longer says that the clock was set forwards, or that the machine or all processes that could
/// supervise were stopped. May be called from any thread and process; never fails.
OJS_SHM_API std::uint64_t longest_clock_step_ms(const Observer& observer);

}  // namespace ojs_shm
