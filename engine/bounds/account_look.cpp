// SPDX-License-Identifier: Apache-2.0
#include "engine/bounds/account_look.hpp"

#include <algorithm>

namespace ojs_shm::engine {

std::uint32_t find_account(const Store& store, std::uint64_t key) {
  for (std::uint32_t i = 0; i < account_places(store); ++i) {
    const std::uint32_t at = account_place(store, key, i);
    const AccountRecord& found = store.accounts[at];
    const bool open = (found.reserved.load() & kAccountClosed) == 0;
    const std::uint64_t its = found.key.load();
    if (its == key && open) return at;
    if (its == 0 && open) break;
  }
  return kNoIndex;
}

std::uint64_t account_out(const Store& store, std::uint32_t at) {
  std::uint64_t sum = 0;
  const std::uint32_t high = std::min(store.segment().header().lanes_high.load(), store.lanes());
  for (std::uint32_t l = 0; l < high; ++l) sum += store.account_tally(at, l).out.get_ordered();
  return sum;
}

std::uint64_t account_beside(const Store& store, std::uint32_t at) {
  return 0 - store.accounts[at].written_off.load() - account_out(store, at);
}

}  // namespace ojs_shm::engine
