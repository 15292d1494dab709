// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ojs_shm::cli {

/// The lines of a descriptor. Throws shell::Refusal when it cannot be read.
class LineReader {
 public:
  explicit LineReader(int fd);
  /// False at the end. A last line without an end counts.
  bool next(std::string& line);
  /// Whether next() would return without waiting.
  bool has_more_now() const;
  std::uint64_t count() const { return lines_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Of the whole file; 0 where it is none.
  std::uint64_t size() const { return size_; }

 private:
  int fd_;
  std::string buffer_;
  std::size_t begin_ = 0;
  bool ended_ = false;
  std::uint64_t lines_ = 0, bytes_ = 0, size_ = 0;
};

}  // namespace ojs_shm::cli
