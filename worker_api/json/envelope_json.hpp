// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ojs_shm/result.hpp>

/// JSON as text. A value is carried as the slice of the text it was written in, so that a number
/// keeps every digit and an unknown member comes back as it was sent. check() first; everything
/// else trusts that the text has passed it.
namespace ojs_shm::json {

/// Values nested deeper than this are refused.
inline constexpr std::size_t kMaxDepth = 100;

/// One JSON value in UTF-8 and nothing around it but white space. Source: RFC 8259. Errors:
/// kInvalid, subject "json".
Status check(std::string_view text);

/// check() in one fast walk: true only of JSON, and false also of some JSON (exponents, \u).
bool plainly_json(std::string_view text) noexcept;

/// Without the white space around it.
std::string_view trim(std::string_view text) noexcept;

enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
Kind kind_of(std::string_view value) noexcept;

struct Member {
  std::string name;
  std::string_view value;  ///< a slice of the object's text
};
std::vector<Member> members_of(std::string_view object);
std::vector<std::string_view> elements_of(std::string_view array);

/// Nothing when the value is of another kind.
std::optional<std::string> string_of(std::string_view value);
std::optional<bool> bool_of(std::string_view value) noexcept;
std::optional<double> number_of(std::string_view value);
/// Only what is written without a point and an exponent. Beyond 64 bits it reads as the nearest
/// limit, so that the caller's own bounds refuse it.
std::optional<std::int64_t> integer_of(std::string_view value) noexcept;

/// Appends the value without the white space between its tokens.
void append_compact(std::string& out, std::string_view value);
std::string compact(std::string_view value);

/// Appends the text as a JSON string. Bytes that are no UTF-8 become U+FFFD, so the result is
/// always JSON.
void append_quoted(std::string& out, std::string_view text);

/// Writes an object member by member. A member's name is a text, or a literal, which stands for
/// itself.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }

  template <class Name>
  void value(const Name& name, std::string_view json) {  ///< compacted
    append_compact(open(name), json);
  }
  template <class Name>
  void text(const Name& name, std::string_view text) {
    append_quoted(open(name), text);
  }
  template <class Name>
  void number(const Name& name, std::int64_t number) {
    open(name);
    put(number);
  }
  template <class Name>
  void number(const Name& name, double number) {  ///< what is not finite is left out
    if (!std::isfinite(number)) return;
    open(name);
    put(number);
  }
  template <class Name>
  void boolean(const Name& name, bool boolean) {
    open(name).append(boolean ? "true" : "false");
  }
  /// Opens a member whose value the caller appends.
  std::string& open(std::string_view name);
  template <std::size_t kSize>
  std::string& open(const char (&literal)[kSize]) {
    char text[kSize + 3] = {',', '"'};  // ,"literal":
    std::memcpy(text + 2, literal, kSize - 1);
    text[kSize + 1] = '"';
    text[kSize + 2] = ':';
    const std::size_t begin = std::exchange(empty_, false) ? 1 : 0;
    return out_.append(text + begin, sizeof text - begin);
  }
  void close() { out_ += '}'; }

 private:
  void put(std::int64_t number);
  void put(double number);

  std::string& out_;
  bool empty_ = true;
};

}  // namespace ojs_shm::json
