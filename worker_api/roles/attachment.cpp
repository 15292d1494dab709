// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/attachment.hpp"

#include <grp.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/observing/census.hpp"
#include "shm/parking.hpp"
#include "worker_api/roles/pools.hpp"
#include "worker_api/roles/settings_check.hpp"

namespace ojs_shm::internal {
namespace {

/// Attachments of this process, so that the child of a fork can disown them.
struct Registry {
  std::mutex mutex;
  std::vector<Attachment*> all;
};
Registry& registry() {
  static auto* one = new Registry;  // lives as long as the process: handles may outlive statics
  return *one;
}

void watch_forks() {
  static const int once =
      ::pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                       [] {
                         for (Attachment* attachment : registry().all) attachment->mark_forked();
                         registry().all.clear();
                         registry().mutex.unlock();
                       });
  (void)once;
}

bool is_link(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

/// Where a link leads to: all processes must meet at one lock file, by whatever name they attach.
std::string real_path_of(const SegmentName& name) {
  const std::string path = path_of(name);
  std::error_code unknown;
  const std::string real =
      is_link(path) ? std::filesystem::canonical(path, unknown).string() : path;
  return unknown ? path : real;
}

/// What a new user meets first, so it says how to go on.
Error no_segment(const SegmentName& name) {
  struct stat status {};
  const bool folder = ::stat(name.dir.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  const std::string where = name.dir == SegmentName{}.dir ? "" : " --dir " + name.dir;
  Error error =
      Error{Code::kCannotAttach, "no segment '" + name.name + "' in " + name.dir}.about("segment");
  const std::string path = path_of(name);
  if (is_link(path)) {
    std::error_code unknown;
    error.message = path + " is a symbolic link to " +
                    std::filesystem::read_symlink(path, unknown).string() +
                    ", where no file is; `ojs-shm rm " + name.name + where +
                    "` removes the link, or choose another --name";
  } else {
    error.message += folder ? "; start one: ojs-shm-broker --name " + name.name + where
                            : ", which is not a directory";
  }
  return error;
}

/// Why there is no lock file to be had. `making`: none was there.
Error no_locks(const shm::LockFile& locks, const SegmentName& name, const std::string& problem,
               bool making) {
  Error error = Error{Code::kCannotAttach, problem}.about(shm::LockFile::path_of(path_of(name)));
  switch (locks.error()) {
    case EACCES:
    case EPERM:
    case EROFS: error.code = Code::kPermission; break;
    case ENOSPC:
    case EDQUOT: error.code = Code::kNoSpace; break;
    case EMFILE:
    case ENFILE:
    case ENOMEM: error.code = Code::kInternal; break;
    case ELOOP:
      error.message = error.subject + " is a symbolic link, which no lock file may be; remove it";
      break;
    default:
      if (making)
        error.message = "no file can be made in " + name.dir + ": " +
                        std::generic_category().message(locks.error()) +
                        "; choose another directory (--dir)";
  }
  return error;
}

}  // namespace

std::string problem_of(const SegmentName& name) {
  if (name.name.empty() || name.name.size() > 64 || name.name.front() == '.')
    return "a segment's name has 1 to 64 characters and does not begin with a dot";
  for (const char c : name.name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
          c == '_' || c == '-'))
      return "a segment's name has only letters, digits, '.', '_' and '-'";
  if (name.name.ends_with(".lock"))
    return "a segment's name does not end in .lock: such a file belongs to another";
  if (name.dir.empty()) return "the directory is empty";
  return {};
}

std::string how_to_move(const SegmentName& name, std::string_view whose) {
  const std::string where = name.dir == SegmentName{}.dir ? "" : " --dir " + name.dir;
  return "; its jobs move to another segment by `ojs-shm export " + name.name + where + " > " +
         name.name + ".ndjson`" + std::string(whose) + " and `ojs-shm import " + name.name +
         ".ndjson --name NEW" + where + "`";
}

void abandon(std::thread& thread) {
  if (thread.joinable()) [[maybe_unused]]
    const auto* never_ended = new std::thread(std::move(thread));
}

std::string path_of(const SegmentName& name) { return name.dir + "/ojs-shm." + name.name; }

Attachment::Attachment(shm::Segment segment, SegmentName name, Role role)
    : segment_(std::move(segment)), store_(segment_), name_(std::move(name)), role_(role) {
  stop_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

Attachment::~Attachment() {
  {
    const std::lock_guard lock(registry().mutex);
    std::erase(registry().all, this);
  }
  if (forked() && locks_.descriptor() < 0) {  // the keeper and the record are the parent's
    abandon(keeper_);
    if (stop_fd_ >= 0) ::close(stop_fd_);
    return;
  }
  stopping_.set();
  if (forked()) {  // lost with the lock; that descriptor may be another by now, too
    if (keeper_.joinable()) {
      ring_doorbell();
      keeper_.join();  // within a second
    }
    return;
  }
  if (stop_fd_ >= 0) ::eventfd_write(stop_fd_, 1);
  if (keeper_.joinable()) {
    ring_doorbell();
    keeper_.join();
  }
  if (process_ != shm::kNoIndex) {
    segment_.process(process_).live.store(0, shm::Point::kProcessFreed);
    locks_.unlock(shm::kProcessByte + process_);
  }
  if (stop_fd_ >= 0) ::close(stop_fd_);
}

void Attachment::mark_lost() { forked_.set(); }

void Attachment::mark_forked() {
  forked_.set();
  locks_.close();  // so that the parent's death frees its byte
}

/// Without its lock file it cannot be told which processes live, and a new file says that none
/// does. Only when that is so.
Status Attachment::check_lock_file() const {
  const std::string path = shm::LockFile::path_of(segment_.path());
  for (std::uint32_t i = 0; i < segment_.geometry().processes && ::access(path.c_str(), F_OK) != 0;
       ++i)
    if (segment_.process(i).live.load() != 0 && shm::runs(segment_.process(i)))
      return Error{Code::kInUse,
                   path + " is missing, but process " +
                       std::to_string(segment_.process(i).pid.load()) +
                       " lives in the segment; end it first, or remove the segment by force"}
          .about("segment");
  return {};
}

/// One whose byte is held by another process: that one joins just now, or keeps every other out
/// while it looks whether the segment may go.
bool Attachment::has_free_record() const {
  for (std::uint32_t i = 0; i < segment_.geometry().processes; ++i)
    if (segment_.process(i).live.load() == 0) return true;
  return false;
}

Status Attachment::join(Role role) {
  constexpr unsigned kLooksAtRemover = 5000;
  if (role != Role::kObserver)
    if (Status checked = check_lock_file(); !checked) return checked;
  watch_forks();
  std::string problem;
  {
    const std::lock_guard lock(registry().mutex);  // no fork comes between
    problem = locks_.open(segment_.path(), role != Role::kObserver, 0, {});
    if (role != Role::kObserver) registry().all.push_back(this);
  }
  if (role == Role::kObserver) return {};
  if (!problem.empty()) return no_locks(locks_, name_, problem, false);
  process_ = shm::join(segment_, locks_);
  Deaths deaths;
  if (process_ == shm::kNoIndex && repair(deaths)) process_ = shm::join(segment_, locks_);
  for (unsigned look = 0; process_ == shm::kNoIndex && has_free_record(); ++look) {
    if (look == kLooksAtRemover || !segment_.named()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process_ = shm::join(segment_, locks_);
  }
  if (!segment_.named()) return no_segment(name_);
  if (process_ == shm::kNoIndex) return exhausted(store_, Pool::kProcesses);
  ring_doorbell();  // the supervisor wants to watch us
  if (!deaths.pids.empty()) tell(deaths);
  return role == Role::kMember ? start_keeper() : Status();
}

Result<std::shared_ptr<Attachment>> Attachment::open(const SegmentName& name, Role role) {
  if (const std::string problem = problem_of(name); !problem.empty())
    return Error{Code::kInvalid, problem}.about("name");
  shm::Opened opened =
      engine::open(real_path_of(name),
                   role == Role::kObserver ? shm::Mapping::kReadOnly : shm::Mapping::kWritable);
  if (opened.code == shm::OpenCode::kNoFile) return no_segment(name);
  if (opened.code == shm::OpenCode::kOtherFormat || opened.code == shm::OpenCode::kOtherLayout)
    opened.detail += how_to_move(name, " of the version that made it");
  if (opened.code != shm::OpenCode::kOk) return error_of(opened);
  auto attachment = std::make_shared<Attachment>(std::move(opened.segment), name, role);
  if (const Status joined = attachment->join(role); !joined) return joined.error();
  return attachment;
}

Result<std::shared_ptr<Attachment>> Attachment::examine(const std::string& path) {
  shm::Opened opened = engine::open(path, shm::Mapping::kPrivate);
  if (opened.code == shm::OpenCode::kOtherFormat || opened.code == shm::OpenCode::kOtherLayout)
    opened.detail += "; look at it with the version that made it";
  if (opened.code != shm::OpenCode::kOk) return error_of(opened);
  const std::filesystem::path file(path);
  constexpr std::string_view kPrefix = "ojs-shm.";
  std::string name = file.filename().string();
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  auto attachment = std::make_shared<Attachment>(
      std::move(opened.segment), SegmentName{std::move(name), file.parent_path().string()},
      Role::kExaminer);
  // NO CRASH POINT: the mapping is private
  attachment->segment().header().clock_offset_ms.store(
      shm::kStandingClock | engine::last_trace_ms(attachment->store()), shm::Point::kNone);
  return attachment;
}

Result<std::shared_ptr<Attachment>> Attachment::create(const SegmentName& name,
                                                       const SegmentOptions& options, Role role) {
  if (const std::string problem = problem_of(name); !problem.empty())
    return Error{Code::kInvalid, problem}.about("name");
  const auto convention =
      engine::convention_by_name(options.convention.empty() ? "ojs" : options.convention);
  if (!convention)
    return Error{Code::kInvalid,
                 "convention '" + options.convention + "' is none of ojs, ojs-core, qo"}
        .about("convention");
  if (options.retention_ms > kLongestRetentionMs)
    return Error{Code::kInvalid, "retention is at most 100 years"}
        .about("retention")
        .at_most(kLongestRetentionMs, "ms");
  engine::Plan plan;
  plan.size_bytes = options.size_bytes;
  plan.slots = options.slots;
  plan.max_queues = options.max_queues;
  plan.max_tenants = options.max_tenants;
  plan.max_body_bytes = options.max_body_bytes;
  plan.max_handles = options.max_handles;
  plan.max_waiting = options.max_waiting;
  plan.retention_ms = options.retention_ms;
  plan.convention = *convention;
  plan.mode = options.mode;
  plan.group = options.group;
  plan.version = library_version();
  if (const engine::Measured measured = engine::measure(plan); !measured.problem.empty())
    return Error{Code::kInvalid, measured.problem}.about("size");
  if (!options.group.empty() && ::getgrnam(options.group.c_str()) == nullptr)
    return Error{Code::kInvalid, "there is no group '" + options.group + "' (--group)"}.about(
        "group");
  struct stat dir {};
  if (::stat(name.dir.c_str(), &dir) != 0 ? errno == ENOENT || errno == ENOTDIR
                                          : !S_ISDIR(dir.st_mode))
    return Error{Code::kCannotAttach,
                 "there is no directory " + name.dir + "; make it, or choose another (--dir)"}
        .about("dir");
  // An open of the lock file of a segment that exists finds out first whether it may be made anew.
  if (::access(path_of(name).c_str(), F_OK) == 0)
    return Error{Code::kInUse, path_of(name) + " exists"}.about("segment");
  if (is_link(path_of(name))) return no_segment(name);  // no file may be made behind it
  // The lock file comes first: no process may attach to a segment whose locks do not exist.
  shm::LockFile locks;
  if (const std::string problem = locks.open(path_of(name), true, options.mode, options.group);
      !problem.empty())
    return no_locks(locks, name, problem, true);
  shm::Opened opened = engine::make(path_of(name), plan);
  if (opened.code != shm::OpenCode::kOk) {
    if (::access(path_of(name).c_str(), F_OK) != 0)
      ::unlink(shm::LockFile::path_of(path_of(name)).c_str());
    return error_of(opened);
  }
  auto attachment = std::make_shared<Attachment>(std::move(opened.segment), name, role);
  if (const Status joined = attachment->join(role); !joined) {  // made for no process
    ::unlink(path_of(name).c_str());
    ::unlink(shm::LockFile::path_of(path_of(name)).c_str());
    return joined.error();
  }
  return attachment;
}

// ---- lanes --------------------------------------------------------------------------------------

Result<std::uint32_t> Attachment::take_lane(bool for_service) {
  if (forked()) return closed();
  if (read_only()) return Error{Code::kPermission, "this attachment only observes"};
  // A lane is its process's: without a record it would stay free for other processes, and be given
  // back under their hands.
  if (process_ == shm::kNoIndex) return exhausted(store_, Pool::kProcesses);
  shm::Half& high = segment_.header().lanes_high;
  const std::uint32_t usable = for_service ? store_.lanes() : lanes_for_handles(store_);
  do {
    for (std::uint32_t i = 0; i < usable; ++i) {
      std::uint32_t before = high.load();
      while (before <= i && !high.cas(before, i + 1, shm::Point::kLaneTaken)) {}
      shm::Half& process = segment_.lane(i).process;
      if (process.load() == 0 && process.cas_once(0, process_ + 1, shm::Point::kLaneTaken))
        return i;
    }
  } while (repair_the_dead() != 0);  // theirs come back
  return exhausted(store_, Pool::kHandles);
}

void Attachment::give_lane(std::uint32_t lane) {
  segment_.lane(lane).process.store(0, shm::Point::kLaneFreed);
}

// ---- the dead -----------------------------------------------------------------------------------

bool Attachment::alive(std::uint32_t process) const {
  if (post_mortem()) return false;
  if (segment_.process(process).live.load() == 0) return false;
  if (process == process_) return true;
  if (locks_.descriptor() < 0) return shm::runs(segment_.process(process));
  return locks_.held(shm::kProcessByte + process);
}

bool Attachment::others_attached() const {
  for (std::uint32_t i = 0; i < segment_.geometry().processes; ++i)
    if (i != process_ && alive(i)) return true;
  return false;
}

void Attachment::ring_doorbell() {
  segment_.header().doorbell.fetch_add(1, shm::Point::kDoorbellRung);
  shm::futex_wake(segment_.header().doorbell, 1 << 20);
}

// ---- handles ------------------------------------------------------------------------------------

Result<std::unique_ptr<Handle>> Handle::make(const Segment& segment) {
  const Result<std::uint32_t> lane = segment.attachment()->take_lane();
  if (!lane) return lane.error();
  return std::make_unique<Handle>(segment, *lane);
}

Handle::Handle(Segment segment, std::uint32_t lane)
    : segment_(std::move(segment)),
      attachment_(segment_.attachment()),
      actor_(attachment_->store(), lane) {
  const shm::Segment& memory = attachment_->segment();
  const std::uint32_t process = memory.lane(lane).process.load();
  if (process != 0)
    actor_.recorder().sign(memory.process(process - 1).pid.load(), store().now_ms());
}

Handle::~Handle() {
  if (attachment_->forked()) return;  // the parent goes on with it
  actor_.drain();
  actor_.retire();
  attachment_->give_lane(lane());
}

}  // namespace ojs_shm::internal
