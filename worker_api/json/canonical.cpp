// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/canonical.hpp"

#include <spdlog/fmt/fmt.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <utility>

#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::json {
namespace {

constexpr std::int64_t kExact = 1LL << 53;

std::string normal_form(std::string_view text) {
  if (std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; }))
    return std::string(text);  // is its own
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &composed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, &std::free);
  if (length < 0) return std::string(text);
  return {reinterpret_cast<const char*>(composed), static_cast<std::size_t>(length)};
}

/// As RFC 8785 3.2.2.2 asks: only what must be escaped is.
void append_string(std::string& out, std::string_view text) {
  out += '"';
  const auto escaped = [](unsigned char c) { return c < 0x20 || c == '"' || c == '\\'; };
  for (auto rest = text; !rest.empty();) {
    const auto plain = static_cast<std::size_t>(std::ranges::find_if(rest, escaped) - rest.begin());
    out += rest.substr(0, plain);
    if (plain == rest.size()) break;
    const char c = rest[plain];
    rest.remove_prefix(plain + 1);
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    }
  }
  out += '"';
}

/// The shortest digits that read back as the number, written as ECMAScript does (7.1.12.1).
void append_number(std::string& out, double number) {
  if (number == 0) {
    out += '0';
    return;
  }
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, number, std::chars_format::scientific);
  std::string_view written(text, static_cast<std::size_t>(end.ptr - text));
  if (written.front() == '-') {
    out += '-';
    written.remove_prefix(1);
  }
  const std::size_t e = written.find('e');
  std::string digits(written.substr(0, e));
  std::erase(digits, '.');
  int exponent = 0;
  const std::string_view after = written.substr(e + (written[e + 1] == '+' ? 2 : 1));
  std::from_chars(after.data(), after.data() + after.size(), exponent);
  const int count = static_cast<int>(digits.size()), point = exponent + 1;
  if (count <= point && point <= 21) {
    out += digits + std::string(static_cast<std::size_t>(point - count), '0');
  } else if (0 < point && point <= 21) {
    out += digits.substr(0, static_cast<std::size_t>(point)) + '.' +
           digits.substr(static_cast<std::size_t>(point));
  } else if (-6 < point && point <= 0) {
    out += "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  } else {
    out += digits.substr(0, 1);
    if (count > 1) out += '.' + digits.substr(1);
    out += fmt::format("e{}{}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
}

/// Names sort by their UTF-16 units. Source: RFC 8785 3.2.3.
std::u16string utf16_of(std::string_view text) {
  std::u16string units;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t point = 0;
    const utf8proc_ssize_t read = utf8proc_iterate(bytes, left, &point);
    if (read <= 0) break;
    if (point >= 0x10000) {
      units += static_cast<char16_t>(0xD800 + ((point - 0x10000) >> 10));
      units += static_cast<char16_t>(0xDC00 + ((point - 0x10000) & 0x3FF));
    } else {
      units += static_cast<char16_t>(point);
    }
    bytes += read;
    left -= read;
  }
  return units;
}

}  // namespace

void append_canonical_object(std::string& out, std::vector<Named> members) {
  std::ranges::sort(members, {}, &Named::order);
  out += '{';
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i != 0) out += ',';
    append_string(out, members[i].name);
    out += ':';
    out += members[i].value;
  }
  out += '}';
}

Named canonical_member(std::string_view name, std::string value) {
  std::string normal = normal_form(name);
  std::u16string order = utf16_of(normal);
  return {std::move(normal), std::move(order), std::move(value)};
}

std::string canonical(std::string_view value) {
  std::string out;
  append_canonical(out, value);
  return out;
}

void append_canonical(std::string& out, std::string_view value) {
  value = trim(value);
  switch (kind_of(value)) {
    case Kind::kNull:
    case Kind::kBool: out += value; return;
    case Kind::kNumber: {
      const std::int64_t whole = integer_of(value).value_or(0);  // beyond 64 bits: the limit
      double number = 0;
      std::from_chars(value.data(), value.data() + value.size(), number);
      if (whole > kExact || whole < -kExact)
        out += value;
      else
        append_number(out, number);
      return;
    }
    case Kind::kString: append_string(out, normal_form(string_of(value).value_or(""))); return;
    case Kind::kArray: {
      out += '[';
      bool first = true;
      for (const std::string_view element : elements_of(value)) {
        if (!std::exchange(first, false)) out += ',';
        append_canonical(out, element);
      }
      out += ']';
      return;
    }
    case Kind::kObject: {
      std::vector<Named> members;
      for (const Member& member : members_of(value))
        members.push_back(canonical_member(member.name, canonical(member.value)));
      return append_canonical_object(out, std::move(members));
    }
  }
}

}  // namespace ojs_shm::json
