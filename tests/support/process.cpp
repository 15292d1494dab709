// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace ojs_shm::test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

void close_fd(int& fd) noexcept {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

void make_nonblocking(int fd) {
  if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) fail("fcntl");
}

/// Reads what is there; closes the descriptor at its end.
void read_some(int& fd, std::string& into) {
  std::array<char, 65536> block;
  while (fd >= 0) {
    const ssize_t n = ::read(fd, block.data(), block.size());
    if (n > 0) {
      into.append(block.data(), static_cast<std::size_t>(n));
    } else if (n == 0) {
      close_fd(fd);
    } else if (errno != EINTR) {
      if (errno != EAGAIN) close_fd(fd);
      return;
    }
  }
}

std::vector<std::string> merged_environment(const ProcessOptions& options) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto replaced = std::any_of(
        options.environment.begin(), options.environment.end(),
        [&](const auto& added) { return text.substr(0, text.find('=')) == added.first; });
    if (!replaced) merged.emplace_back(text);
  }
  for (const auto& [name, value] : options.environment) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (auto& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

Process Process::start(const std::vector<std::string>& argv, const ProcessOptions& options) {
  int in[2], out[2], err[2], started[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0 ||
      ::pipe2(started, O_CLOEXEC) != 0) {
    fail("pipe2");
  }
  auto arguments = argv;
  auto variables = merged_environment(options);
  const auto argument_list = pointers(arguments);
  const auto variable_list = pointers(variables);

  const pid_t pid = ::fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    ::signal(SIGPIPE, SIG_DFL);
    if (options.directory.empty() || ::chdir(options.directory.c_str()) == 0) {
      ::execvpe(argument_list[0], argument_list.data(), variable_list.data());
    }
    const int reason = errno;
    [[maybe_unused]] const auto ignored = ::write(started[1], &reason, sizeof reason);
    ::_exit(127);
  }
  for (int fd : {in[0], out[1], err[1], started[1]}) ::close(fd);
  Process process;
  process.pid_ = pid;
  process.in_ = in[1];
  process.out_ = out[0];
  process.err_ = err[0];
  int reason = 0;
  const bool refused = ::read(started[0], &reason, sizeof reason) == sizeof reason;
  ::close(started[0]);
  if (refused) throw std::system_error(reason, std::generic_category(), "cannot run " + argv.at(0));

  process.pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (process.pidfd_ < 0) fail("pidfd_open");
  for (int fd : {process.in_, process.out_, process.err_}) make_nonblocking(fd);
  ::signal(SIGPIPE, SIG_IGN);
  process.pending_ = options.input;
  process.close_when_written_ = !options.keep_input_open;
  return process;
}

Process::Process(Process&& other) noexcept { *this = std::move(other); }

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(in_, other.in_);
  std::swap(out_, other.out_);
  std::swap(err_, other.err_);
  std::swap(reaped_, other.reaped_);
  std::swap(close_when_written_, other.close_when_written_);
  std::swap(status_, other.status_);
  pending_.swap(other.pending_);
  out_text_.swap(other.out_text_);
  err_text_.swap(other.err_text_);
  return *this;
}

Process::~Process() {
  if (pid_ > 0 && !reaped_) {
    ::kill(pid_, SIGKILL);
    reap(true);
  }
  close_all();
}

void Process::close_all() noexcept {
  for (int* fd : {&in_, &out_, &err_, &pidfd_}) close_fd(*fd);
}

void Process::reap(bool block) {
  if (reaped_ || pid_ <= 0) return;
  pid_t got;
  do {
    got = ::waitpid(pid_, &status_, block ? 0 : WNOHANG);
  } while (got < 0 && errno == EINTR);
  reaped_ = got == pid_;
}

bool Process::running() {
  reap(false);
  return !reaped_;
}

void Process::signal(int number) {
  if (!reaped_ && pid_ > 0) ::kill(pid_, number);
}

void Process::write(std::string_view text) {
  pending_ += text;
  pump(std::chrono::milliseconds(0));
}

void Process::close_input() {
  close_when_written_ = true;
  pump(std::chrono::milliseconds(0));
}

void Process::drain() {
  read_some(out_, out_text_);
  read_some(err_, err_text_);
}

const std::string& Process::err() {
  drain();
  return err_text_;
}

bool Process::pump(std::chrono::milliseconds at_most) {
  if (pending_.empty() && close_when_written_) close_fd(in_);
  std::array<pollfd, 4> watched = {{{pending_.empty() ? -1 : in_, POLLOUT, 0},
                                    {out_, POLLIN, 0},
                                    {err_, POLLIN, 0},
                                    {reaped_ ? -1 : pidfd_, POLLIN, 0}}};
  ::poll(watched.data(), watched.size(), static_cast<int>(at_most.count()));
  if (watched[0].revents != 0) {
    const ssize_t n = ::write(in_, pending_.data(), pending_.size());
    if (n > 0) pending_.erase(0, static_cast<std::size_t>(n));
    if (n < 0 && errno != EAGAIN && errno != EINTR) {  // it does not read any more
      pending_.clear();
      close_fd(in_);
    }
    if (pending_.empty() && close_when_written_) close_fd(in_);
  }
  const bool ended = (watched[3].revents & POLLIN) != 0;
  drain();
  return !ended && !reaped_;
}

std::optional<std::string> Process::read_line(std::chrono::milliseconds bound) {
  const auto end = Clock::now() + bound;
  for (;;) {
    if (const auto newline = out_text_.find('\n'); newline != std::string::npos) {
      std::string line = out_text_.substr(0, newline);
      out_text_.erase(0, newline + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0 || out_ < 0) return std::nullopt;
    if (!pump(left) && out_text_.find('\n') == std::string::npos) return std::nullopt;
  }
}

Finished Process::wait(std::chrono::milliseconds bound) {
  const auto end = Clock::now() + bound;
  Finished finished;
  close_when_written_ = true;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (!pump(std::max(left, std::chrono::milliseconds(0)))) break;
    if (left.count() <= 0) {
      finished.timed_out = true;
      signal(SIGKILL);
      break;
    }
  }
  reap(true);
  drain();
  finished.exit_code = WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  finished.out = std::exchange(out_text_, {});
  finished.err = std::exchange(err_text_, {});
  close_all();
  return finished;
}

Finished run(const std::vector<std::string>& argv, const ProcessOptions& options) {
  return Process::start(argv, options).wait();
}

std::string program(std::string_view name) {
  namespace fs = std::filesystem;
  if (const char* dir = std::getenv("OJS_SHM_BIN_DIR"); dir != nullptr)
    return std::string(dir) + "/" + std::string(name);
  for (fs::path at = fs::read_symlink("/proc/self/exe").parent_path(); at != at.root_path();
       at = at.parent_path()) {
    for (const auto& candidate : {at / name, at / "bin" / name}) {
      if (fs::is_regular_file(candidate)) return candidate.string();
    }
  }
  throw std::runtime_error("no program " + std::string(name) +
                           " near this test; set OJS_SHM_BIN_DIR");
}

ScratchDirectory::ScratchDirectory() {
  // In memory where it can be: segments are meant to lie there, and a disk would only slow the
  // tests down.
  const bool memory = ::access("/dev/shm", W_OK) == 0;
  std::string pattern =
      std::string(memory ? "/dev/shm" : std::filesystem::temp_directory_path().c_str()) +
      "/ojs-shm-test-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) fail("mkdtemp");
  path_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void yield_for_a_moment() {
  const timespec pause{0, 2'000'000};
  ::nanosleep(&pause, nullptr);
}

}  // namespace ojs_shm::test
