// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {
namespace {

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/// In the child: becomes the program, or leaves with the shell's code if it cannot be run.
[[noreturn]] void become(const std::vector<std::string>& words, int out, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // it went before it could be watched
  ::dup2(out, STDOUT_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  ::_exit(127);
}

}  // namespace

Child::Child(std::string name, const std::vector<std::string>& words) : name_(std::move(name)) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    shell::refuse(Code::kInternal, fmt::format("{}: {}", name_, std::strerror(errno)));
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(words, ends[1], parent);
  ::close(ends[1]);
  out_ = ends[0];
  if (pid_ < 0) shell::refuse(Code::kInternal, fmt::format("{}: {}", name_, std::strerror(errno)));
}

Child::~Child() {
  if (pid_ > 0 && !ended()) {
    send(SIGTERM);
    wait();
  }
  ::close(out_);
}

std::string Child::first_line() {
  std::string line;
  char c = 0;
  for (;;) {
    const ssize_t got = ::read(out_, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    if (c == '\n') return line;
    line += c;
  }
}

void Child::send(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

int Child::wait() {
  if (pid_ <= 0) return exit_code_;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
  pid_ = -1;
  return exit_code_ = code_of(status);
}

bool Child::ended() {
  if (pid_ <= 0) return true;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
  pid_ = -1;
  exit_code_ = code_of(status);
  return true;
}

std::string program_beside(const std::string& name) {
  char path[PATH_MAX] = {};
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length > 0) {
    const std::string self(path, static_cast<std::size_t>(length));
    const std::string beside = self.substr(0, self.rfind('/') + 1) + name;
    if (::access(beside.c_str(), X_OK) == 0) return beside;
  }
  return name;
}

}  // namespace ojs_shm::cli
