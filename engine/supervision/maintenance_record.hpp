// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/bits.hpp"
#include "shm/layout.hpp"

namespace ojs_shm::engine {

constexpr std::size_t kReasonBytes = 256;

/// EngineHeader::maintenance: while it is on, no queue hands out a job.
///   63..32 version  15..2 length of the reason  1 its bank  0 on
struct MaintenanceWord {
  std::uint64_t word = 0;
  constexpr explicit MaintenanceWord(std::uint64_t w) : word(w) {}
  using On = shm::Field<0, 1>;
  using Bank = shm::Field<1, 1>;
  using Length = shm::Field<2, 14>;
  using Version = shm::Field<32, 32>;
  constexpr bool on() const { return On::get(word) != 0; }
  constexpr unsigned bank() const { return static_cast<unsigned>(Bank::get(word)); }
  constexpr std::size_t length() const {
    return Length::get(word) < kReasonBytes ? Length::get(word) : kReasonBytes;
  }
};

}  // namespace ojs_shm::engine
