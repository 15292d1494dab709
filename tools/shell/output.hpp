// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/fmt/fmt.h>

#include <string>
#include <string_view>
#include <utility>

#include <ojs_shm/result.hpp>

namespace ojs_shm::shell {

/// Puts /dev/null where a program was started without stdin, stdout or stderr, so that no file of
/// ours is taken for one of them. What was closed still cannot be read or written, but for stderr,
/// and for stdout if `nobody_listens`.
void fill_closed_descriptors(bool nobody_listens = false) noexcept;

/// The text with every byte that a terminal would obey written out: control characters, those of
/// Unicode that turn the direction of what follows, and bytes that are not UTF-8, as \\x1b or
/// \\u202e. A line end stays when `lines` says so.
std::string printable(std::string_view text, bool lines = false);

/// The same for JSON, whose strings have escapes of their own: means what it meant.
std::string printable_json(std::string_view json);

bool is_utf8(std::string_view text) noexcept;

/// Text for stderr. A failure to write it is ignored: it changes neither the work nor the exit
/// status.
void say(std::string_view text) noexcept;
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}

/// Whether a line that is written to the descriptor now is taken at once. Waits a moment for a slow
/// reader, but not again for one that `stands`, which the caller keeps between two calls.
bool takes_output(int fd, bool& stands) noexcept;

/// From now on inform() says nothing.
void be_quiet() noexcept;
/// One line to stdout that tells what is so now, for people; not with --quiet.
void inform(std::string_view text) noexcept;
template <class... Args>
void inform(fmt::format_string<Args...> format, Args&&... args) {
  inform(std::string_view(fmt::format(format, std::forward<Args>(args)...)));
}

/// After each write to stdout: a buffer that is full is written then, and only then errno says why
/// it failed.
void note_output() noexcept;
/// What is said when stdout failed with this errno; 0: it is not known why.
Error output_lost(int number);
/// Sends what was written to stdout on its way. An error when any of it could not be written, now
/// or before; kClosed when its reader went away, kNoSpace when its device is full.
Status flush_output();

}  // namespace ojs_shm::shell
