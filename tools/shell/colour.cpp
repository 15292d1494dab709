// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/colour.hpp"

#include <unistd.h>

#include <cstdlib>

#include <spdlog/fmt/fmt.h>

namespace ojs_shm::shell {
namespace {

struct Meaning {
  std::string_view word, colour;
};
constexpr std::string_view kGreen = "32", kYellow = "33", kRed = "31", kBlue = "36";
constexpr Meaning kMeanings[] = {
    {"ok", kGreen},      {"alive", kGreen},      {"completed", kGreen},  {"running", kGreen},
    {"active", kBlue},   {"retryable", kYellow}, {"cancelled", kYellow}, {"warning", kYellow},
    {"paused", kYellow}, {"stopped", kYellow},   {"stale", kYellow},     {"discarded", kRed},
    {"problem", kRed},   {"dead", kRed},         {"unreadable", kRed}};

std::string in(std::string_view style, std::string_view text) {
  return fmt::format("\x1b[{}m{}\x1b[0m", style, text);
}

/// Source: no-color.org, which lets an empty value mean nothing.
bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0;
}

}  // namespace

bool has_colours(int fd) {
  if (::isatty(fd) != 1 || is_set("NO_COLOR")) return false;
  const char* terminal = std::getenv("TERM");
  return terminal == nullptr || std::string_view(terminal) != "dumb";
}

std::string coloured(std::string_view word) {
  for (const Meaning& meaning : kMeanings)
    if (meaning.word == word) return in(meaning.colour, word);
  return std::string(word);
}

std::string bold(std::string_view text) { return in("1", text); }
std::string red(std::string_view text) { return in(kRed, text); }

}  // namespace ojs_shm::shell
