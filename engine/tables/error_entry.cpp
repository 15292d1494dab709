// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "engine/tables/job_look.hpp"

namespace ojs_shm::engine {
namespace {

struct ErrorHead {
  std::uint64_t at_ms;
  std::uint16_t attempt, retryable, code, type;
  std::uint32_t message, details;
};

}  // namespace

std::string encode_error(const ErrorEntry& entry) {
  const auto short_text = [](std::string_view text) { return text.substr(0, 255); };
  const auto long_text = [](std::string_view text) { return text.substr(0, kLongestErrorText); };
  const std::string_view code = short_text(entry.code), type = short_text(entry.type);
  const std::string_view message = long_text(entry.message), details = long_text(entry.details);
  const ErrorHead head{entry.at_ms,
                       entry.attempt,
                       entry.retryable,
                       static_cast<std::uint16_t>(code.size()),
                       static_cast<std::uint16_t>(type.size()),
                       static_cast<std::uint32_t>(message.size()),
                       static_cast<std::uint32_t>(details.size())};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  return bytes.append(code).append(type).append(message).append(details);
}

std::vector<ErrorEntry> decode_errors(std::string_view bytes) {
  std::vector<ErrorEntry> entries;
  ErrorHead head;
  while (bytes.size() >= sizeof head) {
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes.remove_prefix(sizeof head);
    const std::uint64_t length = std::uint64_t{head.code} + head.type + head.message + head.details;
    if (length > bytes.size()) break;
    auto cut = [&bytes](std::size_t size) {
      const std::string_view part = bytes.substr(0, size);
      bytes.remove_prefix(size);
      return part;
    };
    ErrorEntry entry{head.at_ms, head.attempt, head.retryable != 0, {}, {}, {}, {}};
    entry.code = cut(head.code);
    entry.type = cut(head.type);
    entry.message = cut(head.message);
    entry.details = cut(head.details);
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace ojs_shm::engine
