// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ojs_shm::test {

/// Which job of which producer a payload belongs to.
struct PayloadKey {
  std::uint32_t producer = 0;
  std::uint64_t sequence = 0;
  bool operator==(const PayloadKey&) const = default;
};

/// Appends to `into` a JSON array ["j1",producer,sequence,"hash","filler"] with `filler_bytes` of
/// filler. Everything follows from the key and from `context` (the queue, say), so a torn, mixed-up
/// or misrouted body gives itself away without any process having kept a copy.
void write_payload(std::string& into, PayloadKey key, std::string_view context,
                   std::size_t filler_bytes);

/// The key, when every byte is as write_payload() made it for this context; else nothing.
std::optional<PayloadKey> judge_payload(std::string_view body, std::string_view context);

}  // namespace ojs_shm::test
