// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shm/atomics.hpp"

namespace ojs_shm::shm {

/// Sleeps while `word` holds `expected`, at most `timeout_ms`. May return early; the caller looks
/// again. Works between processes: the kernel finds the word by its file, not by its address.
void futex_wait(const Half& word, std::uint32_t expected, std::uint64_t timeout_ms);

/// Milliseconds of a clock that all processes of the host share and that is never set.
std::uint64_t steady_ms();

/// Wakes up to `count` sleepers.
void futex_wake(const Half& word, int count);

/// Between two looks at something that another is changing right now: first a pause, then its turn
/// on this processor, then a tenth of a millisecond. Ten thousand looks take a second or two.
void wait_for_another(unsigned looks);

}  // namespace ojs_shm::shm
