// SPDX-License-Identifier: Apache-2.0
#include "tests/environment/forked.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <system_error>

namespace ojs_shm::test {
namespace {

void write_line(int fd, std::string_view line) {
  const std::string text = std::string(line) + "\n";
  if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) ::_exit(126);
}

std::string read_line(int fd) {
  std::string line;
  for (char c; ::read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

[[noreturn]] void end_forbidden(int out, const char* what) {
  write_line(out, std::string("forbidden: ") + what + ": " + std::strerror(errno));
  ::_exit(0);
}

/// In the child. May fork once more, for a pid namespace begins with the next child; returns in the
/// innermost one, with its pid as others see it.
pid_t enter(const Surroundings& where, int out) {
  pid_t pid = ::getpid();
  const bool mounts = !where.tmpfs_at.empty() || !where.bind_from.empty();
  if (mounts && (::unshare(CLONE_NEWNS) != 0 ||
                 ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0))
    end_forbidden(out, "a mount namespace");
  if (!where.bind_from.empty() &&
      ::mount(where.bind_from.c_str(), where.bind_at.c_str(), nullptr, MS_BIND, nullptr) != 0)
    end_forbidden(out, "a bind mount");
  if (!where.tmpfs_at.empty() &&
      ::mount("tmpfs", where.tmpfs_at.c_str(), "tmpfs", 0, where.tmpfs_options.c_str()) != 0)
    end_forbidden(out, "mounting a tmpfs");
  if (where.pid_namespace) {
    int told[2];
    if (::pipe2(told, O_CLOEXEC) != 0 || ::unshare(CLONE_NEWPID) != 0)
      end_forbidden(out, "a pid namespace");
    const pid_t inner = ::fork();
    if (inner < 0) end_forbidden(out, "a process in a new pid namespace");
    if (inner > 0) {
      write_line(told[1], std::to_string(inner));
      int status = 0;
      ::waitpid(inner, &status, 0);
      ::_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    pid = std::atoi(read_line(told[0]).c_str());
    ::close(told[0]);
    ::close(told[1]);
    if (mounts && ::mount("proc", "/proc", "proc", 0, nullptr) != 0)
      end_forbidden(out, "a /proc of its own");
  }
  if (where.user) {
    const gid_t group = where.group.value_or(static_cast<gid_t>(*where.user));
    if (::setgroups(1, &group) != 0 || ::setresgid(group, group, group) != 0 ||
        ::setresuid(*where.user, *where.user, *where.user) != 0)
      end_forbidden(out, "another user");
  }
  return pid;
}

}  // namespace

void Parent::tell(std::string_view line) const { write_line(out_, line); }
std::string Parent::hear() const { return read_line(in_); }

Forked::Forked(const Body& body, const Surroundings& surroundings) {
  int to_child[2], to_parent[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(to_parent, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  std::cout.flush();
  child_ = ::fork();
  if (child_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child_ == 0) {
    ::close(to_child[1]);
    ::close(to_parent[0]);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    write_line(to_parent[1], "pid " + std::to_string(enter(surroundings, to_parent[1])));
    Parent parent(to_child[0], to_parent[1]);
    int code = 125;
    try {
      code = body(parent);
    } catch (const std::exception& failure) {
      parent.tell(std::string("threw: ") + failure.what());
    }
    ::_exit(code);
  }
  ::close(to_child[0]);
  ::close(to_parent[1]);
  in_ = to_parent[0];
  out_ = to_child[1];
  const std::string first = listen().value_or("forbidden: it died at once");
  if (first.starts_with("pid "))
    pid_ = std::atoi(first.c_str() + 4);
  else
    forbidden_ = first.substr(first.find(' ') + 1);
}

Forked::~Forked() {
  if (!reaped_) {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (child_ != pid_) ::kill(child_, SIGKILL);
    collect(true);
  }
  ::close(in_);
  ::close(out_);
}

std::optional<std::string> Forked::listen(std::chrono::milliseconds bound) {
  const auto until = std::chrono::steady_clock::now() + bound;
  for (;;) {
    if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd readable{in_, POLLIN, 0};
    if (left.count() < 0 || ::poll(&readable, 1, static_cast<int>(left.count())) <= 0)
      return std::nullopt;
    char block[4096];
    const ssize_t n = ::read(in_, block, sizeof block);
    if (n <= 0) return std::nullopt;
    pending_.append(block, static_cast<std::size_t>(n));
  }
}

void Forked::tell(std::string_view line) { write_line(out_, line); }

void Forked::signal(int number) {
  if (!reaped_ && pid_ > 0) ::kill(pid_, number);
}

bool Forked::ended() {
  if (reaped_) return true;
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

int Forked::collect(bool block) {
  if (reaped_) return code_;
  int status = 0;
  if (::waitpid(child_, &status, block ? 0 : WNOHANG) != child_) return -1;
  reaped_ = true;
  return code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int Forked::wait(std::chrono::milliseconds bound) {
  if (eventually([this] { return ended(); }, bound)) return collect(true);
  if (pid_ > 0) ::kill(pid_, SIGKILL);
  collect(true);
  return -1;
}

}  // namespace ojs_shm::test
