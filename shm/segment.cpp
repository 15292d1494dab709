// SPDX-License-Identifier: Apache-2.0
#include "shm/segment.hpp"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/file_mapping.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace ojs_shm::shm {
namespace bip = boost::interprocess;

namespace {

std::string reason(int error) { return std::generic_category().message(error); }

Opened refuse(OpenCode code, std::string detail) {
  Opened opened;
  opened.code = code;
  opened.detail = std::move(detail);
  return opened;
}

/// A file that has no name yet, or, where the file system has no such files, a hidden one.
struct Draft {
  int fd = -1;
  std::string hidden;  ///< the hidden name, if it has one
  ~Draft() {
    if (fd >= 0) ::close(fd);
    if (!hidden.empty()) ::unlink(hidden.c_str());
  }
};

bool plausible(const Geometry& g) {
  constexpr std::uint32_t kMany = 1U << 24;
  return g.slots >= 1 && g.slots < kMany && g.lanes >= 1 && g.lanes <= kMaxLanes &&
         g.processes >= 1 && g.processes <= kMaxProcesses && g.rings >= 1 && g.rings < kMany &&
         g.chunks >= 4 && g.chunks < kMany && g.blocks >= 1 && g.blocks < (1U << 30) &&
         g.key_cells >= 64 && (g.key_cells & (g.key_cells - 1)) == 0 && g.area_bytes >= 256 &&
         g.area_bytes < (1ULL << 40);
}

/// Opens a draft in the directory of `path`; false where errno says why not.
bool open_draft(const std::string& path, Draft& draft) {
  const std::string dir = path.substr(0, path.find_last_of('/') + 1);
  draft.fd = ::open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (draft.fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
    return draft.fd >= 0;
  const std::string hidden = path + ".new." + std::to_string(::getpid());
  draft.fd = ::open(hidden.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (draft.fd >= 0) draft.hidden = hidden;
  return draft.fd >= 0;
}

/// What can be done about a full file system: how much there is, and the ways to need less or have
/// more.
std::string room_left(const std::string& path) {
  struct statvfs system {};
  const std::string dir = path.substr(0, path.find_last_of('/') + 1);
  if (::statvfs(dir.c_str(), &system) != 0) return "";
  return "; " + dir + " has " + std::to_string(system.f_bavail * system.f_frsize) +
         " bytes left: make room there, or choose another directory (--dir) or a smaller segment "
         "(--size, --slots)";
}

constexpr std::uint64_t kHugePage = 2U << 20;

/// Addresses that nothing else is mapped at; gives back what no mapping took.
struct AddressRoom {
  explicit AddressRoom(std::uint64_t size)
      : begin(::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        taken(address()),
        taken_end(address()),
        end(address() + size) {}
  ~AddressRoom() {
    if (begin == MAP_FAILED) return;
    if (taken > address()) ::munmap(begin, taken - address());
    if (end > taken_end) ::munmap(reinterpret_cast<void*>(taken_end), end - taken_end);
  }
  AddressRoom(const AddressRoom&) = delete;
  AddressRoom& operator=(const AddressRoom&) = delete;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(begin); }

  void* begin;
  std::uint64_t taken, taken_end, end;
};

/// Maps the file at a multiple of a huge page, so that the kernel can map those of the file as one
/// each.
bip::mapped_region map_aligned(const bip::file_mapping& file, bip::mode_t mode,
                               std::uint64_t size) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t whole_pages = (size + page - 1) & ~(page - 1);
  AddressRoom room(whole_pages + kHugePage);
  if (room.begin == MAP_FAILED) return {file, mode, 0, size};
  const std::uint64_t aligned = (room.address() + kHugePage - 1) & ~(kHugePage - 1);
  bip::mapped_region region(file, mode, 0, size, reinterpret_cast<void*>(aligned), MAP_FIXED);
  room.taken = aligned;
  room.taken_end = aligned + whole_pages;
  return region;
}

/// Makes the file out of huge pages, as far as the kernel grants them for the asking (tmpfs, since
/// Linux 6.1). It wants one page of each to be there.
void ask_for_huge_pages(int fd, std::byte* base, std::uint64_t size) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE
  for (std::uint64_t at = 0; at + kHugePage <= size; at += kHugePage)
    if (::posix_fallocate(fd, static_cast<off_t>(at), 1) != 0 ||
        ::madvise(base + at, kHugePage, kCollapse) != 0)
      return;
}

/// Gives the file all its pages. Without the signal that a file-size limit would end the process
/// with: its error says enough.
int reserve(int fd, std::byte* base, std::uint64_t size) {
  sigset_t limit, before;
  ::sigemptyset(&limit);
  ::sigaddset(&limit, SIGXFSZ);
  ::pthread_sigmask(SIG_BLOCK, &limit, &before);
  if (::ftruncate(fd, static_cast<off_t>(size)) == 0) ask_for_huge_pages(fd, base, size);
  const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(size));
  const timespec at_once{};
  if (error == EFBIG) ::sigtimedwait(&limit, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace

void Segment::adopt(bip::mapped_region region, int fd, const Geometry& geometry, bool writable,
                    const std::string& path) {
  region_ = std::move(region);
  base_ = static_cast<std::byte*>(region_.get_address());
  geometry_ = geometry;
  offsets_ = offsets_of(geometry);
  slots_ = reinterpret_cast<Slot*>(base_ + offsets_.slots);
  rings_ = reinterpret_cast<RingEnds*>(base_ + offsets_.rings);
  chunks_ = reinterpret_cast<Chunk*>(base_ + offsets_.chunks);
  writable_ = writable;
  std::error_code unknown;  // without a working directory the path stays as it came
  path_ = std::filesystem::absolute(path, unknown).string();
  if (unknown) path_ = path;
  struct stat file {};
  if (::fstat(fd, &file) == 0) device_ = file.st_dev, inode_ = file.st_ino;
}

bool Segment::named() const {
  struct stat file {};
  // else another file hides it
  if (::stat(path_.c_str(), &file) != 0) return errno != ENOENT && errno != ENOTDIR;
  return file.st_dev == device_ && file.st_ino == inode_;
}

bool Segment::map_ahead(std::uint64_t& from) const {
  constexpr std::uint64_t kSlice = 2U << 20;
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, since Linux 5.14
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = (offsets_.slots & ~(page - 1)) + from,
                      end = offsets_.block_words & ~(page - 1);
  if (begin >= end) return false;
  from += kSlice;
  return ::madvise(base_ + begin, std::min(kSlice, end - begin), kPopulateWrite) == 0;
}

Opened open_segment(const std::string& path, std::uint64_t upper_fingerprint, Mapping mapping) {
  const bool writable = mapping == Mapping::kWritable;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return refuse(errno == EACCES ? OpenCode::kNoPermission : OpenCode::kNoFile,
                  path + ": " + reason(errno));
  if (!S_ISREG(status.st_mode)) return refuse(OpenCode::kNotASegment, path + " is no regular file");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (::access(path.c_str(), writable ? R_OK | W_OK : R_OK) != 0)
    return refuse(OpenCode::kNoPermission,
                  path + ": " + reason(errno) + " (needs the segment's user or group)");
  if (size < sizeof(Header))
    return refuse(OpenCode::kNotASegment, path + " is too short to be a segment");
  try {
    const auto access = writable ? bip::read_write : bip::read_only;
    const bip::file_mapping file(path.c_str(), access);
    bip::mapped_region region =
        map_aligned(file, mapping == Mapping::kPrivate ? bip::copy_on_write : access, size);
    const auto& header = *static_cast<const Header*>(region.get_address());
    if (header.magic != kMagic)
      return refuse(OpenCode::kNotASegment, path + " is not an ojs-shm segment");
    if (header.ready.load() != kReady)  // PAIR segment-ready
      return refuse(OpenCode::kNotReady, path + " was never finished; remove it");
    if (header.format != kFormat)
      return refuse(OpenCode::kOtherFormat, path + " has segment format " +
                                                std::to_string(header.format) +
                                                ", this library speaks " + std::to_string(kFormat));
    if (header.fingerprint != layout_fingerprint(upper_fingerprint))
      return refuse(OpenCode::kOtherLayout,
                    path + " was made by a library built with another layout");
    const Geometry geometry = header.geometry;  // copied once, judged, and never read again
    if (!plausible(geometry) || offsets_of(geometry).end != size || header.size_bytes != size)
      return refuse(OpenCode::kTorn,
                    path + " is truncated or damaged: its sizes contradict each other");
    Opened opened;
    opened.segment.adopt(std::move(region), file.get_mapping_handle().handle, geometry, writable,
                         path);
    opened.code = OpenCode::kOk;
    return opened;
  } catch (const bip::interprocess_exception& error) {
    return refuse(error.get_native_error() == EACCES ? OpenCode::kNoPermission : OpenCode::kSystem,
                  path + ": " + error.what());
  }
}

Opened make_segment(const std::string& path, const MakeSpec& spec, void (*fill)(Segment&, void*),
                    void* context) {
  if (!plausible(spec.geometry))
    return refuse(OpenCode::kSystem, "the chosen sizes are out of range");
  const std::uint64_t size = offsets_of(spec.geometry).end;
  if (::access(path.c_str(), F_OK) == 0) return refuse(OpenCode::kExists, path + " exists");
  Draft draft;
  if (!open_draft(path, draft))
    return refuse(errno == EACCES || errno == EPERM ? OpenCode::kNoPermission : OpenCode::kSystem,
                  path + ": " + reason(errno));
  const std::string by_descriptor = "/proc/self/fd/" + std::to_string(draft.fd);
  Opened opened;
  try {
    opened.segment.adopt(map_aligned(bip::file_mapping(by_descriptor.c_str(), bip::read_write),
                                     bip::read_write, size),
                         draft.fd, spec.geometry, true, path);
  } catch (const bip::interprocess_exception& error) {
    return refuse(OpenCode::kSystem, path + ": " + error.what());
  }
  if (const int error = reserve(draft.fd, opened.segment.base_, size); error != 0)
    return refuse(error == ENOSPC || error == EFBIG ? OpenCode::kNoSpace : OpenCode::kSystem,
                  path + ": cannot reserve " + std::to_string(size) + " bytes: " + reason(error) +
                      (error == EFBIG ? " (the limit of `ulimit -f`)" : room_left(path)));
  if (!spec.group.empty()) {
    const struct group* group = ::getgrnam(spec.group.c_str());
    if (group == nullptr || ::fchown(draft.fd, static_cast<uid_t>(-1), group->gr_gid) != 0)
      return refuse(OpenCode::kNoPermission,
                    "cannot give " + path + " to group '" + spec.group + "'");
  }
  if (::fchmod(draft.fd, spec.mode) != 0)
    return refuse(OpenCode::kNoPermission, path + ": " + reason(errno));
  Header& header = opened.segment.header();
  header.magic = kMagic;
  header.format = kFormat;
  header.fingerprint = layout_fingerprint(spec.upper_fingerprint);
  header.size_bytes = size;
  header.geometry = spec.geometry;
  header.salt = random_u64();
  read_boot_id(header.boot);
  header.made_at_ms = now_ms(opened.segment);
  fill(opened.segment, context);
  header.ready.store(kReady,
                     Point::kNone);  // PAIR segment-ready; NO CRASH POINT: the file has no name yet
  const int linked = draft.hidden.empty() ? ::linkat(AT_FDCWD, by_descriptor.c_str(), AT_FDCWD,
                                                     path.c_str(), AT_SYMLINK_FOLLOW)
                                          : ::link(draft.hidden.c_str(), path.c_str());
  if (const int error = errno; linked != 0)
    return refuse(error == EEXIST ? OpenCode::kExists : OpenCode::kSystem,
                  path + ": " + reason(error));
  opened.code = OpenCode::kOk;
  return opened;
}

void read_boot_id(std::uint64_t (&boot)[2]) {
  boot[0] = boot[1] = 0;
  std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file == nullptr) return;
  char text[40] = {};
  const std::size_t got = std::fread(text, 1, 36, file);
  std::fclose(file);
  for (std::size_t i = 0; i < got; ++i)
    boot[i % 2] = boot[i % 2] * 131 + static_cast<unsigned char>(text[i]);
}

std::uint64_t now_ms(const Segment& segment) {
  // relaxed: a test that moves a segment's clock does so between operations
  const std::uint64_t offset = segment.header().clock_offset_ms.load_relaxed();
  if ((offset & kStandingClock) != 0) [[unlikely]]
    return offset & ~kStandingClock;
  timespec now;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000 + offset;
}

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  if (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value))
    value = 0x9E3779B97F4A7C15ULL;
  return value;
}

}  // namespace ojs_shm::shm
