// SPDX-License-Identifier: Apache-2.0
#include "shm/member.hpp"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

namespace ojs_shm::shm {
namespace {

struct flock byte_lock(short type, std::uint32_t byte) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return lock;
}

/// What /proc tells of a process.
struct Seen {
  bool told = false;
  char state = '?';
  std::uint64_t start_time = 0;  ///< clock ticks since the boot
};

Seen look_at(pid_t pid) {
  Seen seen;
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "re");
  if (file == nullptr) return seen;
  char text[1024] = {};
  const std::size_t got = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  // a name may hold anything
  const char* const name_end = got == 0 ? nullptr : std::strrchr(text, ')');
  unsigned long long start = 0;
  if (name_end != nullptr &&
      std::sscanf(
          name_end + 1,
          " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
          &seen.state, &start) == 2) {
    seen.told = true;
    seen.start_time = start;
  }
  return seen;
}

}  // namespace

LockFile& LockFile::operator=(LockFile&& other) noexcept {
  close();
  fd_ = std::exchange(other.fd_, -1);
  error_ = other.error_;
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

bool LockFile::intact() const {
  struct stat now {};
  return fd_ >= 0 && ::fstat(fd_, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
}

void LockFile::close() {
  if (intact()) ::close(fd_);
  fd_ = -1;
}

namespace {

/// Who may write the segment may lock.
void copy_access(int file, const std::string& segment_path) {
  struct stat segment {};
  if (::stat(segment_path.c_str(), &segment) != 0) return;
  if (::fchown(file, static_cast<uid_t>(-1), segment.st_gid) == 0)
    ::fchmod(file, segment.st_mode & 07777);
}

}  // namespace

void LockFile::keep(int fd) {
  struct stat made {};
  fd_ = fd;
  error_ = fd >= 0 ? 0 : errno;
  if (fd >= 0 && ::fstat(fd, &made) == 0) device_ = made.st_dev, inode_ = made.st_ino;
}

std::string LockFile::open(const std::string& segment_path, bool writable, unsigned mode,
                           const std::string& group) {
  const std::string path = path_of(segment_path);
  keep(::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW));
  const bool makes = fd_ < 0 && error_ == ENOENT && writable;
  if (makes) keep(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd_ < 0) return path + ": " + std::generic_category().message(error_);
  // Also a file whose maker was killed before it had done this; that may be another user's.
  const struct group* const found = group.empty() ? nullptr : ::getgrnam(group.c_str());
  if (found != nullptr && ::fchown(fd_, static_cast<uid_t>(-1), found->gr_gid) != 0 && makes) {
    error_ = errno;
    ::unlink(path.c_str());  // made a moment ago, for nothing
    return path + ": cannot change its group to '" + group + "'";
  }
  if (mode != 0)
    ::fchmod(fd_, mode);
  else if (makes)
    copy_access(fd_, segment_path);
  return {};
}

bool LockFile::try_lock(std::uint32_t byte) const {
  struct flock lock = byte_lock(F_WRLCK, byte);
  return ::fcntl(fd_, F_OFD_SETLK, &lock) == 0;
}

void LockFile::unlock(std::uint32_t byte) const {
  struct flock lock = byte_lock(F_UNLCK, byte);
  ::fcntl(fd_, F_OFD_SETLK, &lock);
}

bool LockFile::held(std::uint32_t byte) const {
  struct flock lock = byte_lock(F_WRLCK, byte);
  return ::fcntl(fd_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

std::uint64_t pid_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool runs(const ProcessRecord& record) {
  if (record.namespace_id.load() != pid_namespace()) return true;
  const auto pid = static_cast<pid_t>(record.pid.load());
  if (pid <= 0) return false;
  const Seen seen = look_at(pid);
  if (!seen.told) return ::kill(pid, 0) == 0 || errno == EPERM;
  const std::uint64_t start = record.start_time.load();
  return seen.state != 'Z' && seen.state != 'X' && (start == 0 || start == seen.start_time);
}

bool stopped(const ProcessRecord& record) {
  if (record.namespace_id.load() != pid_namespace()) return false;
  const Seen seen = look_at(static_cast<pid_t>(record.pid.load()));
  const std::uint64_t start = record.start_time.load();
  return (seen.state == 'T' || seen.state == 't') && (start == 0 || start == seen.start_time);
}

std::uint32_t join(Segment& segment, const LockFile& locks) {
  for (std::uint32_t i = 0; i < segment.geometry().processes; ++i) {
    ProcessRecord& record = segment.process(i);
    if (record.live.load() != 0 || !locks.try_lock(kProcessByte + i)) continue;
    if (record.live.load() != 0) {  // taken and left behind between the two looks
      locks.unlock(kProcessByte + i);
      continue;
    }
    // NO CRASH POINT: the byte lock is ours, and the record counts only once it is live
    record.pid.store(static_cast<std::uint32_t>(::getpid()), Point::kNone);
    record.namespace_id.store(pid_namespace(), Point::kNone);  // NO CRASH POINT: as above
    record.start_time.store(look_at(::getpid()).start_time,
                            Point::kNone);                      // NO CRASH POINT: as above
    record.epoch.store(record.epoch.load() + 1, Point::kNone);  // NO CRASH POINT: as above
    record.live.store(1, Point::kProcessLive);
    return i;
  }
  return kNoIndex;
}

}  // namespace ojs_shm::shm
