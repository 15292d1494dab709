// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/text_file.hpp"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace ojs_shm::shell {

Result<std::string> read_text_file(const std::string& path) {
  const auto refused = [&path] {
    Error error;
    error.code = errno == EACCES ? Code::kPermission : Code::kInvalid;
    error.message = fmt::format("cannot read {}: {}", path, std::strerror(errno));
    return error;
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (file == nullptr) return refused();
  std::string text;
  std::array<char, 4096> block;
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), file.get())) text.append(block.data(), got);
  if (std::ferror(file.get()) != 0) return refused();
  return text;
}

}  // namespace ojs_shm::shell
