// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include <ojs_shm/admin.hpp>

#include "tools/cli/health.hpp"
#include "tools/shell/quantity.hpp"

namespace ojs_shm::cli {
namespace {

constexpr std::uint64_t kDefaultSize = 60ULL << 20;  // what a segment takes with all defaults
constexpr long kTmpfs = 0x01021994, kRamfs = 0x858458f6;

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

std::optional<std::uint64_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kib = 0;
    if (words >> name >> kib && name == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

/// What the control group of this process still allows; a segment's pages are charged to the
/// first process that touches them.
std::optional<std::uint64_t> available_in_control_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("0::")) continue;
    const std::string folder = "/sys/fs/cgroup" + line.substr(3);
    const auto most = number_in(folder + "/memory.max");
    const auto used = number_in(folder + "/memory.current");
    if (most && used) return *most > *used ? *most - *used : 0;
  }
  return std::nullopt;
}

/// Permissions do not tell all: no user makes a file in /proc. Empty when one can be made; it has
/// no name, or soon none.
std::string why_no_file(const std::string& dir) {
  int fd = ::open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    std::string path = dir + "/.ojs-shm-doctor-XXXXXX";
    fd = ::mkostemp(path.data(), O_CLOEXEC);
    const int error = errno;
    if (fd >= 0) ::unlink(path.c_str());
    errno = error;
  }
  if (fd < 0) return std::strerror(errno);
  ::close(fd);
  return {};
}

void check_directory(const std::string& dir, std::vector<Finding>& findings) {
  struct stat info {};
  const int error = ::stat(dir.c_str(), &info) != 0 ? errno : S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
  if (error != 0) {
    findings.push_back({"directory", Verdict::kProblem,
                        fmt::format("{}: {}", dir, std::strerror(error)),
                        "make the directory, or choose another with --dir or OJS_SHM_DIR"});
    return;
  }
  if (::access(dir.c_str(), W_OK | X_OK) != 0) {
    findings.push_back({"directory", Verdict::kWarning,
                        fmt::format("{} is not writable for this user", dir),
                        "attaching works, but a broker that makes a segment here needs to write"});
  } else if (const std::string reason = why_no_file(dir); !reason.empty()) {
    findings.push_back({"directory", Verdict::kProblem,
                        fmt::format("no file can be made in {}: {}", dir, reason),
                        "choose another directory with --dir or OJS_SHM_DIR"});
  } else {
    findings.push_back({"directory", Verdict::kOk, dir + " is writable", ""});
  }
  struct statfs kind {};
  if (::statfs(dir.c_str(), &kind) == 0 && kind.f_type != kTmpfs && kind.f_type != kRamfs) {
    findings.push_back(
        {"file system", Verdict::kWarning, fmt::format("{} is not in memory", dir),
         "a tmpfs such as /dev/shm is faster: here every change is written to a disk in the end"});
  }
}

void check_space(const std::string& dir, bool exists, std::vector<Finding>& findings) {
  struct statvfs info {};
  if (::statvfs(dir.c_str(), &info) != 0) return;
  const std::uint64_t free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  const bool enough = exists || free >= kDefaultSize;
  findings.push_back({"space", enough ? Verdict::kOk : Verdict::kWarning,
                      fmt::format("{} free in {}", shell::bytes_text(free), dir),
                      enough ? ""
                             : "a default segment takes 60 MiB; give the broker a smaller --size, "
                               "or this file system "
                               "more room (docker run --shm-size=...)"});
}

void check_memory(std::vector<Finding>& findings) {
  const auto report = [&](const char* check, std::optional<std::uint64_t> left,
                          const char* advice) {
    if (!left) return;
    const bool enough = *left >= kDefaultSize;
    findings.push_back({check, enough ? Verdict::kOk : Verdict::kProblem,
                        shell::bytes_text(*left) + " available", enough ? "" : advice});
  };
  report("memory", available_memory(),
         "the kernel would kill processes when the segment fills; free memory first");
  report("memory of the control group", available_in_control_group(),
         "raise memory.max (docker run --memory=...): the segment's pages count against it");
}

void check_limit(const char* check, int resource, std::uint64_t needed, bool bytes,
                 const char* advice, std::vector<Finding>& findings) {
  struct rlimit limit {};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
  const bool unlimited = limit.rlim_cur == RLIM_INFINITY;
  const bool enough = unlimited || limit.rlim_cur >= needed;
  const std::string text = unlimited ? "unlimited"
                           : bytes   ? shell::bytes_text(limit.rlim_cur)
                                     : std::to_string(limit.rlim_cur);
  findings.push_back(
      {check, enough ? Verdict::kOk : Verdict::kProblem, text, enough ? "" : advice});
}

}  // namespace

std::string_view verdict_name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::kOk: return "ok";
    case Verdict::kWarning: return "warning";
    case Verdict::kProblem: return "problem";
  }
  return "unknown";
}

void check_machine(const SegmentName& where, std::vector<Finding>& findings) {
  struct stat info {};
  const bool exists = ::stat((where.dir + "/ojs-shm." + where.name).c_str(), &info) == 0;
  check_directory(where.dir, findings);
  check_space(where.dir, exists, findings);
  check_memory(findings);
  check_limit("open files", RLIMIT_NOFILE, 64, false, "raise `ulimit -n`", findings);
  check_limit("file size", RLIMIT_FSIZE, kDefaultSize, true,
              "raise `ulimit -f`: a segment cannot be made", findings);
  check_limit("address space", RLIMIT_AS, 4 * kDefaultSize, true,
              "raise `ulimit -v`: a segment cannot be mapped", findings);
}

void check_files(const SegmentName& where, bool this_one, std::vector<Finding>& findings) {
  for (const SegmentFile& file : list_segments(where.dir)) {
    if (this_one && file.name != where.name) continue;
    if (!file.readable) {
      const SegmentName name{file.name, where.dir};
      const auto again = Segment::observe(name);  // for the kind of the refusal
      if (again) continue;                        // a broker has just finished it
      const bool of_others = file.name != where.name && again.code() == Code::kPermission;
      findings.push_back({"file " + file.name, of_others ? Verdict::kOk : Verdict::kProblem,
                          fmt::format("{}: {}", file.path, file.problem),
                          of_others ? "" : advice_for(again.error(), name)});
    } else if (!file.alive) {
      findings.push_back(
          {"file " + file.name, Verdict::kWarning,
           fmt::format("stale: no process holds {} ({})", file.path,
                       shell::bytes_text(file.size_bytes)),
           fmt::format("a broker goes on with it: {}; `ojs-shm rm {}{}` frees its memory",
                       broker_command({file.name, where.dir}), file.name, dir_flag(where))});
    }
  }
}

}  // namespace ojs_shm::cli
