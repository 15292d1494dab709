// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/envelope_json.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include <spdlog/fmt/fmt.h>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/src.hpp>

#include "worker_api/json/plain_bytes.hpp"

namespace ojs_shm::json {
namespace {

// Accepts whatever the grammar accepts and builds nothing.
struct Listener {
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = max_object_size;
  static constexpr std::size_t max_key_size = max_object_size;
  static constexpr std::size_t max_string_size = max_object_size;

  using Why = boost::json::error_code;
  using Text = boost::json::string_view;
  bool on_document_begin(Why&) { return true; }
  bool on_document_end(Why&) { return true; }
  bool on_object_begin(Why&) { return true; }
  bool on_object_end(std::size_t, Why&) { return true; }
  bool on_array_begin(Why&) { return true; }
  bool on_array_end(std::size_t, Why&) { return true; }
  bool on_key_part(Text, std::size_t, Why&) { return true; }
  bool on_key(Text, std::size_t, Why&) { return true; }
  bool on_string_part(Text, std::size_t, Why&) { return true; }
  bool on_string(Text, std::size_t, Why&) { return true; }
  bool on_number_part(Text, Why&) { return true; }
  bool on_int64(std::int64_t, Text, Why&) { return true; }
  bool on_uint64(std::uint64_t, Text, Why&) { return true; }
  /// No reader could hold a larger one. Of 0e999 the parser makes no number, and it is one.
  bool on_double(double number, Text text, Why& why) {
    const Text digits = text.substr(0, text.find_first_of("eE"));
    if (!std::isfinite(number) && digits.find_first_of("123456789") != Text::npos)
      why = boost::json::error::exponent_overflow;
    return !why;
  }
  bool on_bool(bool, Why&) { return true; }
  bool on_null(Why&) { return true; }
  bool on_comment_part(Text, Why&) { return true; }
  bool on_comment(Text, Why&) { return true; }
};

// The length of the string literal at the front, both quotes included.
std::size_t string_length(std::string_view text) noexcept {
  const char* const begin = text.data();
  const char* at = begin + 1;
  for (;;) {
    at = past_plain(begin, at, begin + text.size());
    if (*at == '"') return static_cast<std::size_t>(at - begin) + 1;
    at += *at == '\\' ? 2 : 1;
  }
}

// The length of the value at the front. The text is JSON, so counting brackets suffices.
std::size_t value_length(std::string_view text) noexcept {
  std::size_t depth = 0, i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '"') {
      i += string_length(text.substr(i));
    } else if (c == '{' || c == '[') {
      ++depth, ++i;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return i;  // the end of what this value stands in
      --depth, ++i;
    } else if (depth == 0 && (c == ',' || is_space(c))) {
      return i;
    } else {
      ++i;
      continue;
    }
    if (depth == 0) return i;
  }
  return i;
}

// What stands between the brackets, and a walk over it from one value to the next.
class Inside {
 public:
  explicit Inside(std::string_view container) : rest_(trim(container)) {
    rest_ = rest_.substr(1, rest_.size() - 2);
    skip_to_token();
  }
  bool done() const { return rest_.empty(); }
  std::string_view take() {
    const std::string_view value = rest_.substr(0, value_length(rest_));
    rest_.remove_prefix(value.size());
    skip_to_token();
    return value;
  }

 private:
  void skip_to_token() {
    while (!rest_.empty() && (is_space(rest_[0]) || rest_[0] == ',' || rest_[0] == ':'))
      rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

// The length of the UTF-8 sequence at the front (Unicode 15, table 3-7), or 0 when there is none.
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80, high = lead == 0xED ? 0x9F : 0xBF;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xF4 ? 0x8F : 0xBF;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

/// A number of more digits may be beyond all doubles.
constexpr std::ptrdiff_t kSafeDigits = 300;

/// Sees in one walk that a text is JSON, several times faster than the parser and for most texts.
/// What it does not know (exponents, long numbers, \u) it leaves to the parser, and it never
/// accepts what the parser refuses.
class Glance {
 public:
  explicit Glance(std::string_view text) noexcept
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}
  bool sees_json() noexcept {
    if (!value(kMaxDepth)) return false;
    skip_space();
    return at_ == end_;
  }

 private:
  void skip_space() noexcept {
    while (at_ != end_ && *at_ <= ' ' && is_space(*at_)) ++at_;
  }
  bool takes(char c) noexcept {
    skip_space();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool takes_word(std::string_view word) noexcept {
    if (!std::string_view(at_, size()).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::size_t size() const noexcept { return static_cast<std::size_t>(end_ - at_); }

  bool value(std::size_t depth) noexcept {
    skip_space();
    if (at_ == end_) return false;
    switch (*at_) {
      case '{': return depth != 0 && (++at_, members(depth - 1));
      case '[': return depth != 0 && (++at_, elements(depth - 1));
      case '"': return ++at_, string();
      case 't': return takes_word("true");
      case 'f': return takes_word("false");
      case 'n': return takes_word("null");
      default: return number();
    }
  }
  bool members(std::size_t depth) noexcept {
    if (takes('}')) return true;
    do {
      if (!takes('"') || !string() || !takes(':') || !value(depth)) return false;
    } while (takes(','));
    return takes('}');
  }
  bool elements(std::size_t depth) noexcept {
    if (takes(']')) return true;
    do {
      if (!value(depth)) return false;
    } while (takes(','));
    return takes(']');
  }
  /// Behind its first quote.
  bool string() noexcept {
    while (at_ != end_) {
      at_ = past_plain(begin_, at_, end_);
      if (at_ == end_) return false;
      const auto c = static_cast<unsigned char>(*at_);
      if (c == '"') {
        ++at_;
        return true;
      }
      std::size_t length = 0;
      if (c == '\\')
        length = size() > 1 && std::string_view("\"\\/bfnrt").find(at_[1]) != std::string_view::npos
                     ? 2
                     : 0;
      else if (c >= 0x20)
        length = c < 0x80 ? 1 : utf8_length({at_, size()});
      if (length == 0) return false;
      at_ += length;
    }
    return false;
  }
  bool digits() noexcept {
    const char* const first = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != first;
  }
  bool number() noexcept {
    takes_word("-");
    const char* const first = at_;
    if (!takes_word("0") && !digits()) return false;
    if (at_ - first > kSafeDigits) return false;
    return !takes_word(".") || digits();
  }

  const char* begin_;
  const char* at_;
  const char* end_;
};

/// In a string: no quote, no backslash, no control character, and ASCII.
constexpr bool stands_for_itself(char c) noexcept {
  return c >= ' ' && static_cast<unsigned char>(c) < 0x80 && c != '"' && c != '\\';
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(c) < 0x20)
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  else
    out += c;
}

}  // namespace

std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool plainly_json(std::string_view text) noexcept { return Glance(text).sees_json(); }

Status check(std::string_view text) {
  if (Glance(text).sees_json()) return {};
  boost::json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::json::basic_parser<Listener> parser(options);
  boost::json::error_code why;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), why);
  if (!why && read < text.size()) why = boost::json::error::extra_data;
  if (!why) return {};
  return Error{Code::kInvalid, fmt::format("not JSON: {} at byte {}", why.message(), read)}.about(
      "json");
}

Kind kind_of(std::string_view value) noexcept {
  switch (trim(value).front()) {
    case 'n': return Kind::kNull;
    case 't':
    case 'f': return Kind::kBool;
    case '"': return Kind::kString;
    case '[': return Kind::kArray;
    case '{': return Kind::kObject;
    default: return Kind::kNumber;
  }
}

std::vector<Member> members_of(std::string_view object) {
  constexpr std::size_t kMostly = 8;
  std::vector<Member> members;
  members.reserve(kMostly);
  for (Inside inside(object); !inside.done();) {
    Member& member = members.emplace_back();
    member.name = *string_of(inside.take());
    member.value = inside.take();
  }
  return members;
}

std::vector<std::string_view> elements_of(std::string_view array) {
  std::vector<std::string_view> elements;
  for (Inside inside(array); !inside.done();) elements.push_back(inside.take());
  return elements;
}

std::optional<std::string> string_of(std::string_view value) {
  value = trim(value);
  if (kind_of(value) != Kind::kString) return std::nullopt;
  const std::string_view inner = value.substr(1, value.size() - 2);
  if (inner.find('\\') == std::string_view::npos) return std::string(inner);
  const boost::json::value parsed =
      boost::json::parse(boost::json::string_view(value.data(), value.size()));
  return std::string(parsed.as_string().begin(), parsed.as_string().end());
}

std::optional<bool> bool_of(std::string_view value) noexcept {
  if (kind_of(value) != Kind::kBool) return std::nullopt;
  return trim(value) == "true";
}

std::optional<double> number_of(std::string_view value) {
  value = trim(value);
  if (kind_of(value) != Kind::kNumber) return std::nullopt;
  boost::json::error_code why;
  const boost::json::value parsed =
      boost::json::parse(boost::json::string_view(value.data(), value.size()), why);
  return why ? std::nullopt : std::optional(parsed.to_number<double>());
}

std::optional<std::int64_t> integer_of(std::string_view value) noexcept {
  value = trim(value);
  if (kind_of(value) != Kind::kNumber) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, why] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (end != value.data() + value.size()) return std::nullopt;
  if (why != std::errc::result_out_of_range) return number;
  using Limits = std::numeric_limits<std::int64_t>;
  return value.front() == '-' ? Limits::min() : Limits::max();
}

void append_compact(std::string& out, std::string_view value) {
  if (!has_blanks(value)) {
    out.append(value);
    return;
  }
  std::size_t written = 0;
  for (std::size_t i = 0; i < value.size();) {
    if (value[i] == '"') {
      i += string_length(value.substr(i));
      continue;
    }
    if (is_space(value[i])) {
      out.append(value, written, i - written);
      written = i + 1;
    }
    ++i;
  }
  out.append(value, written);
}

std::string compact(std::string_view value) {
  std::string out;
  out.reserve(value.size());
  append_compact(out, value);
  return out;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    const char* at = past_plain(begin, begin, end);
    while (at != end && stands_for_itself(*at)) ++at;
    out.append(begin, at);
    text.remove_prefix(static_cast<std::size_t>(at - begin));
    if (text.empty()) break;
    std::size_t length = utf8_length(text);
    if (length == 0)
      out += "\xEF\xBF\xBD";
    else if (length == 1)
      append_escaped(out, text[0]);
    else
      out.append(text, 0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

std::string& ObjectWriter::open(std::string_view name) {
  if (!empty_) out_ += ',';
  empty_ = false;
  append_quoted(out_, name);
  out_ += ':';
  return out_;
}

void ObjectWriter::put(std::int64_t number) {
  char digits[24];
  out_.append(digits, std::to_chars(digits, std::end(digits), number).ptr);
}

void ObjectWriter::put(double number) { out_ += fmt::format("{}", number); }

}  // namespace ojs_shm::json
