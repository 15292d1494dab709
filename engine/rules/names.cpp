// SPDX-License-Identifier: Apache-2.0
#include "engine/rules/names.hpp"

namespace ojs_shm::engine {
namespace {

constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

}  // namespace

bool valid_type(std::string_view type) noexcept {
  if (type.size() > kMaxTypeLength) return false;
  char before = '.';  // a segment begins at the start as it does after a dot
  for (const char c : type) {
    const bool begins = before == '.';
    const bool fits = is_lower(c) || (!begins && (is_digit(c) || c == '_' || c == '-' || c == '.'));
    if (!fits) return false;
    before = c;
  }
  return before != '.';
}

bool valid_queue_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > kMaxQueueNameLength) return false;
  if (!is_lower(name[0]) && !is_digit(name[0])) return false;
  for (const char c : name) {
    if (!is_lower(c) && !is_digit(c) && c != '-' && c != '.') return false;
  }
  return true;
}

}  // namespace ojs_shm::engine
