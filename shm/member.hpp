// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "shm/segment.hpp"

namespace ojs_shm::shm {

/// Bytes of the lock file, each an open-file-description lock. The kernel frees them when the last
/// descriptor of their holder is gone, and that is the only proof of death we accept: never a
/// timeout, a pid or a heartbeat.
constexpr std::uint32_t kBrokerSeat = 0;
constexpr std::uint32_t kSupervisorSeat = 1;
constexpr std::uint32_t kProcessByte = 16;

/// The lock file of a segment, opened once for each attachment. Locks taken through one LockFile
/// exclude those of every other, in this process too. Closed in the child of a fork, so that the
/// parent's death is seen.
class LockFile {
 public:
  LockFile() = default;
  LockFile(LockFile&& other) noexcept { *this = std::move(other); }
  LockFile& operator=(LockFile&& other) noexcept;
  ~LockFile() { close(); }

  static std::string path_of(const std::string& segment_path) { return segment_path + ".lock"; }
  /// Empty on success, else why not; error() is its errno then.
  std::string open(const std::string& segment_path, bool writable, unsigned mode,
                   const std::string& group);
  bool try_lock(std::uint32_t byte) const;
  void unlock(std::uint32_t byte) const;
  /// Whether another process holds the byte.
  bool held(std::uint32_t byte) const;
  /// Whether the descriptor is still that of the lock file: a process may close all that it finds,
  /// and open others in their place.
  bool intact() const;
  void close();
  int descriptor() const { return fd_; }
  int error() const { return error_; }

 private:
  void keep(int fd);

  int fd_ = -1, error_ = 0;
  std::uint64_t device_ = 0, inode_ = 0;
};

/// The pid namespace of this process, as a number.
std::uint64_t pid_namespace();

/// Whether the process of a record still runs, by its pid and when it began. The second best proof,
/// for when the lock file is lost or may not be opened: a process that cannot be seen from here
/// counts as running.
bool runs(const ProcessRecord& record);
/// Whether a signal or a debugger has stopped it; false also for a process that cannot be seen from
/// here.
bool stopped(const ProcessRecord& record);

/// Takes a free process record whose byte this caller could lock; kNoIndex when there is none.
/// Records of the dead are left to the repair.
std::uint32_t join(Segment& segment, const LockFile& locks);

}  // namespace ojs_shm::shm
