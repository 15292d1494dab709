// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/line_reader.hpp"

#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {

LineReader::LineReader(int fd) : fd_(fd) {
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
    size_ = static_cast<std::uint64_t>(info.st_size);
}

bool LineReader::next(std::string& line) {
  std::size_t searched = begin_;
  for (;;) {
    const auto newline = buffer_.find('\n', searched);
    if (newline != std::string::npos || (ended_ && begin_ < buffer_.size())) {
      const std::size_t end = newline != std::string::npos ? newline : buffer_.size();
      line.assign(buffer_, begin_, end - begin_);
      begin_ = newline != std::string::npos ? end + 1 : end;
      ++lines_;
      bytes_ += line.size() + 1;
      return true;
    }
    if (ended_) return false;
    searched = buffer_.size() - begin_;
    buffer_.erase(0, std::exchange(begin_, 0));
    std::array<char, 65536> block;
    const ssize_t n = ::read(fd_, block.data(), block.size());
    if (n > 0) buffer_.append(block.data(), static_cast<std::size_t>(n));
    if (n == 0) ended_ = true;
    if (n < 0 && errno != EINTR)
      shell::refuse(Code::kInternal, fmt::format("reading: {}", std::strerror(errno)));
  }
}

bool LineReader::has_more_now() const {
  if (ended_ || buffer_.find('\n', begin_) != std::string::npos) return true;
  pollfd input{fd_, POLLIN, 0};
  return ::poll(&input, 1, 0) == 1;
}

}  // namespace ojs_shm::cli
