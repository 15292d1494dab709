// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conventions 3 and 5 of ojs_shm.h: how texts and growing structs come in and go out.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "worker_api/c_api/c_api_handle.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::c_api {

/// A text that may be left out.
inline std::string_view text_or(const char* text, std::string_view otherwise = {}) {
  return text == nullptr ? otherwise : std::string_view(text);
}
inline std::string_view text_or(const char* text, std::size_t size,
                                std::string_view otherwise = {}) {
  return text == nullptr || size == 0 ? text_or(text, otherwise) : std::string_view(text, size);
}
/// A text that may not.
inline std::string_view text(const char* given, const char* name) { return &out(given, name); }

/// An array of texts; none of it may be missing.
std::vector<std::string> names_of(const char* const* names, std::size_t count, const char* name);

/// A text that shall be JSON of that kind, without the white space around it. Convention 3.
std::string_view json_text(std::string_view given, json::Kind kind, const char* name);
std::string_view any_json_text(std::string_view given, const char* name);
/// The same of texts that may also be left out.
inline std::string_view json_text_or_none(std::string_view given, json::Kind kind,
                                          const char* name) {
  return given.empty() ? given : json_text(given, kind, name);
}
inline std::string_view json_text_or_none(std::string_view given, const char* name) {
  return given.empty() ? given : any_json_text(given, name);
}

[[noreturn]] void wrong_size(const char* name);
[[noreturn]] void newer_caller(const char* name);

/// The caller's size of a struct, refused when it cannot be one: nothing grows past 4 KiB, and
/// fields come in eights.
template <class T>
std::size_t given_size(const T* given, const char* name) {
  constexpr std::size_t kLargest = 4096;
  const std::size_t size = given->struct_size;
  if (size < sizeof given->struct_size || size > kLargest || size % alignof(T) != 0)
    wrong_size(name);
  return size;
}

/// A struct of the caller's size: itself when it is just ours, else read into `room`.
template <class T>
const T& struct_of(const T* given, T& room, const char* name) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_size) == 0);
  const std::size_t size = given_size(&out(given, name), name);
  const T* read = given;
  if (size != sizeof room) [[unlikely]] {
    room = {};
    const auto* bytes = reinterpret_cast<const unsigned char*>(given);
    std::memcpy(&room, bytes, std::min(size, sizeof room));
    for (std::size_t at = sizeof room; at < size; ++at) {
      if (bytes[at] != 0) newer_caller(name);
    }
    read = &room;
  }
  if constexpr (requires { read->reserved; }) {
    if (read->reserved != 0) newer_caller(name);
  }
  return *read;
}
template <class T>
T read_struct(const T* given, const char* name) {
  T room;
  return struct_of(given, room, name);
}

/// Fills a struct of the caller's size from one of ours.
template <class T>
void write_struct(T* place, T filled, const char* name) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_size) == 0);
  const std::size_t size = given_size(&out(place, name), name);
  filled.struct_size = size;
  std::memset(static_cast<void*>(place), 0, size);
  std::memcpy(static_cast<void*>(place), &filled, std::min(size, sizeof filled));
}

/// The same where `fill` sets every field but the size, without a copy as a rule.
template <class T, class Fill>
void fill_struct(T* place, const char* name, const Fill& fill) {
  if (given_size(&out(place, name), name) == sizeof *place) [[likely]]
    return fill(*place);
  T filled{};
  fill(filled);
  write_struct(place, filled, name);
}

/// Flags that this library does not know come from a newer caller.
inline void known_flags(std::uint32_t flags, std::uint32_t known, const char* name) {
  if ((flags & ~known) != 0) newer_caller(name);
}

/// A wait of any length, negative meaning without end, in pieces on which no clock arithmetic can
/// overflow. `wait` takes the length of a piece; `over` tells whether its outcome ends the whole.
template <class Wait, class Over>
auto in_pieces(std::int64_t timeout_ms, Wait wait, Over over) {
  constexpr std::int64_t kPiece = 3'600'000;
  for (;;) {
    const std::int64_t piece = timeout_ms < 0 ? kPiece : std::min(timeout_ms, kPiece);
    auto outcome = wait(std::chrono::milliseconds(piece));
    if (timeout_ms > 0) timeout_ms -= piece;
    if (timeout_ms == 0 || over(outcome)) return outcome;
  }
}

}  // namespace ojs_shm::c_api
