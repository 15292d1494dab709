// SPDX-License-Identifier: Apache-2.0
#include "shm/atomics.hpp"

#if defined(OJS_SHM_TEST_HOOKS)
namespace ojs_shm::shm {
constinit thread_local Hook thread_hook = nullptr;
constinit Hook process_hook = nullptr;
}  // namespace ojs_shm::shm
#endif
