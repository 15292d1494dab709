// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ojs_shm::shell {

void fill_closed_descriptors(bool nobody_listens) noexcept {
  const int access[] = {O_WRONLY, nobody_listens ? O_WRONLY : O_RDONLY, O_WRONLY};  // of stdin, stdout, stderr
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    // The lowest free number is the one that open() takes.
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", access[fd]) != fd) return;
  }
}

void say(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

Status flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  Error error;
  error.code = Code::kInternal;
  error.message =
      fmt::format("not all output could be written: {}", errno != 0 ? std::strerror(errno) : "stdout failed");
  return error;
}

}  // namespace ojs_shm::shell
