// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/tables/store.hpp"

// Accounts of tenants, for reading.

namespace ojs_shm::engine {

/// The account of that key; kNoIndex when it has none.
std::uint32_t find_account(const Store& store, std::uint64_t key);
/// Places at which an account of the key may stand, the first one first.
inline std::uint32_t account_places(const Store& store) {
  return std::min<std::uint32_t>(store.accounts.size(), 64);
}
inline std::uint32_t account_place(const Store& store, std::uint64_t key, std::uint32_t i) {
  return static_cast<std::uint32_t>((key + i) % store.accounts.size());
}
/// What an account holds, as far as it does not stand in `reserved`: a number below zero, modulo
/// 2^63.
std::uint64_t account_beside(const Store& store, std::uint32_t account);
/// What has left the account.
std::uint64_t account_out(const Store& store, std::uint32_t account);
inline std::uint64_t account_charge(const Store& store, std::uint32_t at) {
  return (store.accounts[at].reserved.load() + account_beside(store, at)) & kAccountMask;
}

}  // namespace ojs_shm::engine
