// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/text_file.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace ojs_shm::shell {

namespace {

Error unreadable(const std::string& path) {
  Error error;
  error.code = errno == EACCES ? Code::kPermission : Code::kInvalid;
  error.message = fmt::format("cannot read {}: {}", path, std::strerror(errno));
  return error;
}

Result<std::string> read_all(std::FILE* file, const std::string& path) {
  std::string text;
  std::array<char, 4096> block;
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), file))
    text.append(block.data(), got);
  if (std::ferror(file) != 0) return unreadable(path);
  return text;
}

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (file == nullptr) return unreadable(path);
  return read_all(file.get(), path);
}

Result<std::string> read_text_input(const std::string& path) {
  return path == "-" ? read_all(stdin, "stdin") : read_text_file(path);
}

Status replace_text_file(const std::string& name, std::string_view text) {
  std::error_code absent;
  const bool device =
      std::filesystem::exists(name, absent) && !std::filesystem::is_regular_file(name, absent);
  // A link stays and leads to the new text.
  const std::filesystem::path real = std::filesystem::canonical(name, absent);
  const std::string path = device || real.empty() ? name : real.string();
  // What is not a file, such as a terminal, cannot be replaced and is written to.
  const std::string beside = device ? path : fmt::format("{}.{}.new", path, ::getpid());
  const auto refused = [&] {
    const int error = errno;
    if (!device) ::unlink(beside.c_str());
    Error refusal;
    refusal.code = error == EACCES || error == EPERM ? Code::kPermission
                   : error == ENOSPC                 ? Code::kNoSpace
                                                     : Code::kInvalid;
    refusal.message =
        fmt::format("cannot write {}: {}{}", path, std::strerror(error),
                    error == ENOSPC ? "; make room there or name a file elsewhere" : "");
    return refusal;
  };
  std::FILE* file = std::fopen(beside.c_str(), "we");
  if (file == nullptr) return refused();
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  if (std::fclose(file) != 0 || !written ||
      (!device && std::rename(beside.c_str(), path.c_str()) != 0))
    return refused();
  return {};
}

}  // namespace ojs_shm::shell
