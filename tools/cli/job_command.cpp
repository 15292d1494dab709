// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/job_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tools/shell/output.hpp"
#include "tools/shell/text_file.hpp"

namespace ojs_shm::cli {
namespace {

constexpr std::size_t kErrorTail = 2048;

void close_fd(int& fd) noexcept {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

Error cannot_start(std::string_view what) {
  Error error;
  error.code = errno == E2BIG ? Code::kTooLarge : Code::kInternal;
  error.message = fmt::format("cannot start a command: {}: {}", what, std::strerror(errno));
  return error;
}

/// The pipes of a command; whatever is still in here is closed at the end.
struct Pipes {
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
  int exec[2] = {-1, -1};  // closed by the exec; the errno of one that failed

  bool open() {
    return ::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0 &&
           ::pipe2(err, O_CLOEXEC) == 0 && ::pipe2(exec, O_CLOEXEC) == 0 &&
           ::fcntl(in[1], F_SETFL, O_NONBLOCK) == 0 && ::fcntl(out[0], F_SETFL, O_NONBLOCK) == 0 &&
           ::fcntl(err[0], F_SETFL, O_NONBLOCK) == 0;
  }
  ~Pipes() {
    for (int* pair : {in, out, err, exec}) {
      close_fd(pair[0]);
      close_fd(pair[1]);
    }
  }
};

/// No system passes on a variable that is longer than 128 KiB.
constexpr std::size_t kLongestVariable = 100'000;

/// What this program tells a command of its job. A command that runs `work` itself hands on none of
/// it: it is of another job.
constexpr std::string_view kOfAJob[] = {"OJS_JOB_",
                                        "OJS_TYPE=",
                                        "OJS_QUEUE=",
                                        "OJS_PRIORITY=",
                                        "OJS_ATTEMPT=",
                                        "OJS_MAX_ATTEMPTS=",
                                        "OJS_FENCE=",
                                        "OJS_WORKFLOW_ID=",
                                        "OJS_PARENT_RESULTS=",
                                        "OJS_LAST_CHECKPOINT="};

std::vector<std::string> environment_for(const Job& job) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    if (std::ranges::none_of(kOfAJob, [&](auto name) { return variable.starts_with(name); }))
      variables.emplace_back(variable);
  }
  variables.push_back(fmt::format("OJS_JOB_ID={}", job.id()));
  variables.push_back(fmt::format("OJS_TYPE={}", job.type()));
  variables.push_back(fmt::format("OJS_QUEUE={}", job.queue()));
  variables.push_back(fmt::format("OJS_PRIORITY={}", job.priority()));
  variables.push_back(fmt::format("OJS_ATTEMPT={}", job.attempt()));
  variables.push_back(fmt::format("OJS_MAX_ATTEMPTS={}", job.max_attempts()));
  variables.push_back(fmt::format("OJS_FENCE={}", job.fence()));
  if (const std::string checkpoint = job.last_checkpoint();
      !checkpoint.empty() && checkpoint.size() <= kLongestVariable)
    variables.push_back(fmt::format("OJS_LAST_CHECKPOINT={}", checkpoint));
  return variables;
}

constexpr std::string_view kResultsVariable = "OJS_PARENT_RESULTS=/proc/";
constexpr std::size_t kPidDigits = 10;

/// In the child: its own number comes where ParentResults left room for it, so that those whom it
/// starts may open the file as well, with the file descriptor or without.
void name_own_results(char* const* variables) {
  for (; *variables != nullptr; ++variables) {
    if (std::strncmp(*variables, kResultsVariable.data(), kResultsVariable.size()) != 0) continue;
    char* digit = *variables + kResultsVariable.size() + kPidDigits;
    for (pid_t rest = ::getpid(); rest != 0; rest /= 10)
      *--digit = static_cast<char>('0' + rest % 10);
  }
}

/// The results of the jobs before this one, as a file that is gone with its last reader; the
/// variables that name it. A job of no workflow has none.
class ParentResults {
 public:
  /// False when there is no room for it.
  bool write(const Job& job, std::vector<std::string>& variables) {
    const std::string workflow = job.workflow_id();
    if (workflow.empty()) return true;
    variables.push_back(fmt::format("OJS_WORKFLOW_ID={}", workflow));
    const std::string text = job.parent_results();
    fd_ = ::memfd_create("ojs-parent-results", MFD_CLOEXEC);
    if (fd_ < 0) return false;
    for (std::size_t at = 0; at < text.size();) {
      const ::ssize_t written = ::write(fd_, text.data() + at, text.size() - at);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      at += static_cast<std::size_t>(written);
    }
    variables.push_back(
        fmt::format("{}{}/fd/{}", kResultsVariable, std::string(kPidDigits, '/'), fd_));
    return true;
  }
  ParentResults() = default;
  ParentResults(const ParentResults&) = delete;
  ~ParentResults() { close_fd(fd_); }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (auto& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// In the child, between fork and exec: only what is async-signal-safe, other threads may have held
/// any lock.
[[noreturn]] void become(const Pipes& pipes, int results, char* const* argv, char* const* variables,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(pipes.in[0], STDIN_FILENO);
  ::dup2(pipes.out[1], STDOUT_FILENO);
  ::dup2(pipes.err[1], STDERR_FILENO);
  if (results >= 0) ::fcntl(results, F_SETFD, 0);
  name_own_results(variables);
  ::execvpe(argv[0], argv, variables);
  [[maybe_unused]] const auto written = ::write(pipes.exec[1], &errno, sizeof errno);
  ::_exit(127);
}

/// The errno of an exec that failed, 0 for one that did not. Waits for it.
int exec_fault(Pipes& pipes) {
  close_fd(pipes.exec[1]);
  int fault = 0;
  ssize_t got = 0;
  do got = ::read(pipes.exec[0], &fault, sizeof fault);
  while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof fault) ? fault : 0;
}

/// Whether the process is one of the group that still runs.
bool runs_in(const std::filesystem::path& process, pid_t group) {
  const auto stat = shell::read_text_file(process / "stat");
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return false;
  char state = 'Z';
  int parent = 0, its_group = 0;
  const char* rest = stat->c_str() + name_end + 1;
  return std::sscanf(rest, " %c %d %d", &state, &parent, &its_group) == 3 && its_group == group &&
         state != 'Z' && state != 'X';
}

/// Whether any process of the group still runs. A signal cannot ask: it finds the leader, too,
/// which has ended and was not reaped.
bool group_runs(pid_t group) {
  std::error_code none;
  std::filesystem::directory_iterator each("/proc", none);
  for (; !none && each != std::filesystem::directory_iterator(); each.increment(none)) {
    const std::string name = each->path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos && runs_in(each->path(), group))
      return true;
  }
  return false;
}

}  // namespace

Result<JobCommand> JobCommand::start(const std::vector<std::string>& argv, const Job& job,
                                     std::size_t largest_result) {
  Pipes pipes;
  if (!pipes.open()) return cannot_start("pipe");
  auto arguments = argv;
  auto variables = environment_for(job);
  ParentResults results;
  if (!results.write(job, variables)) return cannot_start("the results of the jobs before it");
  const auto argument_list = pointers(arguments);
  const auto variable_list = pointers(variables);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return cannot_start("fork");
  if (pid == 0) become(pipes, results.fd(), argument_list.data(), variable_list.data(), parent);

  ::setpgid(pid, pid);  // both sides do it: the first signal to the group must find it
  JobCommand command;
  command.pid_ = pid;
  if (const int fault = exec_fault(pipes); fault != 0) {
    errno = fault;
    return cannot_start(argv.front());
  }
  command.pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (command.pidfd_ < 0) return cannot_start("pidfd_open");
  command.in_ = std::exchange(pipes.in[1], -1);
  command.out_ = std::exchange(pipes.out[0], -1);
  command.err_ = std::exchange(pipes.err[0], -1);
  command.input_ = job.args();
  command.largest_result_ = largest_result;
  return command;
}

JobCommand::JobCommand(JobCommand&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      in_(std::exchange(other.in_, -1)),
      out_(std::exchange(other.out_, -1)),
      err_(std::exchange(other.err_, -1)),
      status_(other.status_),
      ended_(other.ended_),
      leader_ended_(other.leader_ended_),
      terminated_(other.terminated_),
      killed_(other.killed_),
      out_too_large_(other.out_too_large_),
      largest_result_(other.largest_result_),
      input_(std::move(other.input_)),
      out_text_(std::move(other.out_text_)),
      err_tail_(std::move(other.err_tail_)) {}

JobCommand::~JobCommand() {
  if (pid_ > 0 && !ended_) {
    kill();
    ::waitpid(pid_, &status_, 0);
  }
  for (int* fd : {&pidfd_, &in_, &out_, &err_}) close_fd(*fd);
}

void JobCommand::signal_group(int number) const {
  if (pid_ > 0 && !ended_) ::kill(-pid_, number);
}

void JobCommand::terminate() {
  terminated_ = true;
  signal_group(SIGTERM);
}

void JobCommand::kill() {
  killed_ = true;
  signal_group(SIGKILL);
}

void JobCommand::send_input() {
  const ssize_t n = ::write(in_, input_.data(), input_.size());
  if (n > 0) input_.erase(0, static_cast<std::size_t>(n));
  const bool gone = n < 0 && errno != EAGAIN && errno != EINTR;  // it does not want its args
  if (input_.empty() || gone) close_fd(in_);
}

void JobCommand::read_output() {
  std::array<char, 65536> block;
  while (out_ >= 0) {
    const ssize_t n = ::read(out_, block.data(), block.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return close_fd(out_);
    const auto bytes = static_cast<std::size_t>(n);
    // read on, so that it can end
    if (out_text_.size() + bytes > largest_result_) out_too_large_ = true;
    if (!out_too_large_) out_text_.append(block.data(), bytes);
  }
}

void JobCommand::read_errors() {
  static thread_local bool reader_stands = false;  // also for the commands to come
  std::array<char, 4096> block;
  while (err_ >= 0) {
    const ssize_t n = ::read(err_, block.data(), block.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return close_fd(err_);
    const auto bytes = static_cast<std::size_t>(n);
    if (shell::takes_output(STDERR_FILENO, reader_stands)) [[maybe_unused]]
      const auto passed_on = ::write(STDERR_FILENO, block.data(), bytes);
    err_tail_.append(block.data(), bytes);
    if (err_tail_.size() > kErrorTail) err_tail_.erase(0, err_tail_.size() - kErrorTail);
  }
}

bool JobCommand::step(std::chrono::milliseconds at_most) {
  if (ended_) return true;
  std::array<pollfd, 4> watched = {{{leader_ended_ ? -1 : pidfd_, POLLIN, 0},
                                    {in_, POLLOUT, 0},
                                    {out_, POLLIN, 0},
                                    {err_, POLLIN, 0}}};
  ::poll(watched.data(), watched.size(), static_cast<int>(at_most.count()));
  if (in_ >= 0 && watched[1].revents != 0) send_input();
  // Its end is looked at before the last read: what it wrote lies in the pipes by then, also when a
  // grandchild still holds them open.
  if (watched[0].revents != 0) {
    siginfo_t leader{};
    leader_ended_ =
        ::waitid(P_PID, static_cast<id_t>(pid_), &leader, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        leader.si_pid == pid_;
  }
  read_output();
  read_errors();
  if (!leader_ended_ || (terminated_ && !killed_ && group_runs(pid_))) return false;
  // Reaped last: until then its number is that of this group and of no other.
  ::waitpid(pid_, &status_, 0);
  return ended_ = true;
}

bool JobCommand::succeeded() const {
  return ended_ && WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
}

int JobCommand::exit_code() const {
  return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
}

std::string JobCommand::failure_code() const {
  return WIFSIGNALED(status_) ? fmt::format("signal_{}", WTERMSIG(status_))
                              : fmt::format("exit_{}", WEXITSTATUS(status_));
}

}  // namespace ojs_shm::cli
