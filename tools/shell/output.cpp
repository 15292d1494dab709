// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ojs_shm::shell {

void fill_closed_descriptors(bool nobody_listens) noexcept {
  // of stdin, stdout, stderr
  const int access[] = {O_WRONLY, nobody_listens ? O_WRONLY : O_RDONLY, O_WRONLY};
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    // open() takes the lowest free number.
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", access[fd]) != fd) return;
  }
}

namespace {

/// The code point at the front of the text and its length in bytes; length 0: it is not UTF-8.
struct Decoded {
  std::uint32_t point = 0;
  std::size_t length = 0;
};

Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  std::uint32_t point = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    point = point << 6U | (byte(i) & 0x3FU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < kLeast[length] || point > 0x10FFFF || surrogate) return {};
  return {point, length};
}

bool commands(std::uint32_t point) {
  const bool control = point < 0x20 || (point >= 0x7F && point < 0xA0);
  const bool direction = (point >= 0x202A && point <= 0x202E) ||
                         (point >= 0x2066 && point <= 0x2069) || point == 0x200E ||
                         point == 0x200F || point == 0x061C;
  return control || direction || point == 0x2028 || point == 0x2029;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  for (std::size_t length = 0; !text.empty(); text.remove_prefix(length))
    if (length = decode(text).length; length == 0) return false;
  return true;
}

std::string printable(std::string_view text, bool lines) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const Decoded next = decode(text);
    const std::size_t length = next.length == 0 ? 1 : next.length;
    if (next.length == 0)
      clean += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (!commands(next.point) || (lines && next.point == '\n'))
      clean += text.substr(0, length);
    else
      clean += next.point < 0x80 ? fmt::format("\\x{:02x}", next.point)
                                 : fmt::format("\\u{:04x}", next.point);
    text.remove_prefix(length);
  }
  return clean;
}

std::string printable_json(std::string_view json) {
  const auto harmless = [](unsigned char c) { return c >= 0x20 && c < 0x7F; };
  if (std::ranges::all_of(json, harmless)) return std::string(json);
  std::string clean;
  while (!json.empty()) {
    const Decoded next = decode(json);
    if (next.length != 0 && commands(next.point))
      clean += fmt::format("\\u{:04x}", next.point);
    else
      clean += json.substr(0, std::max<std::size_t>(next.length, 1));
    json.remove_prefix(std::max<std::size_t>(next.length, 1));
  }
  return clean;
}

void say(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

bool takes_output(int fd, bool& stands) noexcept {
  constexpr int kMomentMs = 100;
  pollfd end{fd, POLLOUT, 0};
  const int ready = ::poll(&end, 1, stands ? 0 : kMomentMs);
  stands = ready <= 0;
  return !stands;
}

namespace {
bool quiet = false;
}

void be_quiet() noexcept { quiet = true; }

void inform(std::string_view text) noexcept {
  if (quiet) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  note_output();
  std::fputc('\n', stdout);
  note_output();
}

namespace {
int first_failure = 0;  // of stdout
}

void note_output() noexcept {
  if (first_failure == 0 && std::ferror(stdout) != 0) first_failure = errno;
}

Error output_lost(int number) {
  return Error{number == EPIPE    ? Code::kClosed
               : number == ENOSPC ? Code::kNoSpace
                                  : Code::kInternal,
               fmt::format("not all output could be written: {}{}",
                           number != 0 ? std::strerror(number) : "stdout failed",
                           number == ENOSPC ? "; make room there or write elsewhere" : "")};
}

Status flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  // kept: the next flush has nothing to write any more, and errno is of other things by then
  if (first_failure == 0) first_failure = errno;
  return output_lost(first_failure);
}

}  // namespace ojs_shm::shell
