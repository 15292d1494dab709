// SPDX-License-Identifier: Apache-2.0
#include "tests/support/self_judging_payload.hpp"

#include <array>
#include <charconv>

namespace ojs_shm::test {
namespace {

constexpr std::string_view kOpening = R"(["j1",)";
constexpr std::string_view kClosing = R"("])";
constexpr std::size_t kHashDigits = 16;

constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

std::uint64_t seed_of(PayloadKey key) { return mix(mix(key.producer) ^ key.sequence); }

/// Each filler byte depends on the key and on its place, so that two halves of two payloads never
/// look like one.
struct Filler {
  std::uint64_t seed, place = 0, word = 0;
  char next() {
    if (place % 8 == 0) word = mix(seed + place);
    const char letter = static_cast<char>('a' + (word & 0x0F));
    word >>= 8;
    ++place;
    return letter;
  }
};

std::uint64_t hash_of(PayloadKey key, std::string_view context, std::size_t filler_bytes) {
  std::uint64_t hash = seed_of(key) ^ mix(filler_bytes);
  for (const char c : context) hash = mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

std::array<char, kHashDigits> hash_digits(std::uint64_t hash) {
  std::array<char, kHashDigits> digits;
  for (char& digit : digits) {
    digit = "0123456789abcdef"[hash >> 60];
    hash <<= 4;
  }
  return digits;
}

bool skip(std::string_view& rest, std::string_view expected) {
  if (!rest.starts_with(expected)) return false;
  rest.remove_prefix(expected.size());
  return true;
}

template <class Number>
bool read_number(std::string_view& rest, Number& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

}  // namespace

void write_payload(std::string& into, PayloadKey key, std::string_view context,
                   std::size_t filler_bytes) {
  into += kOpening;
  into += std::to_string(key.producer);
  into += ',';
  into += std::to_string(key.sequence);
  into += ",\"";
  const auto digits = hash_digits(hash_of(key, context, filler_bytes));
  into.append(digits.data(), digits.size());
  into += "\",\"";
  Filler filler{.seed = seed_of(key)};
  for (std::size_t i = 0; i < filler_bytes; ++i) into += filler.next();
  into += kClosing;
}

std::optional<PayloadKey> judge_payload(std::string_view body, std::string_view context) {
  PayloadKey key;
  if (!skip(body, kOpening) || !read_number(body, key.producer) || !skip(body, ",") ||
      !read_number(body, key.sequence) || !skip(body, ",\"") || body.size() < kHashDigits)
    return std::nullopt;
  const std::string_view digits = body.substr(0, kHashDigits);
  body.remove_prefix(kHashDigits);
  if (!skip(body, "\",\"") || !body.ends_with(kClosing)) return std::nullopt;
  body.remove_suffix(kClosing.size());
  const auto expected = hash_digits(hash_of(key, context, body.size()));
  if (digits != std::string_view(expected.data(), expected.size())) return std::nullopt;
  Filler filler{.seed = seed_of(key)};
  for (const char c : body)
    if (c != filler.next()) return std::nullopt;
  return key;
}

}  // namespace ojs_shm::test
