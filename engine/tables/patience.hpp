// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ojs_shm::engine {

/// How often we look at what another lane holds before we say that its holder seems to be
/// stopped: for longer than a busy machine keeps a process waiting for its turn.
#if defined(OJS_SHM_PATIENCE)
constexpr unsigned kPatience = OJS_SHM_PATIENCE;
#else
constexpr unsigned kPatience = 10'000;
#endif

}  // namespace ojs_shm::engine
