// SPDX-License-Identifier: Apache-2.0
#include "tests/instructions/stepped.hpp"

#include <elf.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <system_error>

namespace ojs_shm::test {
namespace {

// Where an act begins and ends; all that a tracer needs of them is their addresses.
[[gnu::noipa]] void act_begins() { asm volatile("nop"); }
[[gnu::noipa]] void act_is_over() { asm volatile("nop; nop"); }
const auto kBegin = reinterpret_cast<std::uintptr_t>(&act_begins),
           kOver = reinterpret_cast<std::uintptr_t>(&act_is_over);

std::uintptr_t next_instruction(pid_t pid) {
#if defined(__x86_64__)
  user_regs_struct registers{};
  constexpr auto kNext = &user_regs_struct::rip;
#else
  user_regs_struct registers{};
  constexpr auto kNext = &user_regs_struct::pc;
#endif
  iovec all{&registers, sizeof registers};
  if (::ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &all) != 0) return 0;
  return registers.*kNext;
}

constexpr int kThrew = 3;

[[noreturn]] void child(const std::function<void()>& prepare, const std::function<void()>& act,
                        bool complains) {
  int code = 0;
  try {
    prepare();
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
    ::raise(SIGSTOP);
    act_begins();
    act();
  } catch (const std::exception& error) {
    if (complains) std::cerr << error.what() << '\n';
    code = kThrew;
  }
  act_is_over();
  ::_exit(code);
}

}  // namespace

std::string tracing_forbidden() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(errno);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) return std::strerror(errno);
  if (WIFEXITED(status)) return std::string("ptrace: ") + std::strerror(WEXITSTATUS(status));
  const bool steps = ::ptrace(PTRACE_SINGLESTEP, pid, nullptr, nullptr) == 0;
  const int problem = errno;
  if (steps) ::waitpid(pid, &status, 0);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return steps ? "" : std::string("single steps: ") + std::strerror(problem);
}

Stepped::Stepped(const std::function<void()>& prepare, const std::function<void()>& act,
                 bool complains) {
  std::cout.flush();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    child(prepare, act, complains);
  }
  settle();
  if (threw()) throw NotPrepared();
  if (!WIFSTOPPED(status_)) throw std::runtime_error("the child did not come to its act");
  ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL);
  acting_ = true;
  if (!run_to(kBegin, 1))
    while (acting_ && at_ != kBegin) step();
}

Stepped::~Stepped() { kill(); }

void Stepped::settle() {
  if (::waitpid(pid_, &status_, __WALL) != pid_)
    throw std::system_error(errno, std::generic_category(), "waitpid");
  if (!WIFSTOPPED(status_)) {
    pid_ = -1;
    acting_ = false;
    return;
  }
  at_ = next_instruction(pid_);
  if (at_ == kOver) acting_ = false;
  passed_on_ = WSTOPSIG(status_) == SIGTRAP || WSTOPSIG(status_) == SIGSTOP ? 0 : WSTOPSIG(status_);
}

void Stepped::go(int request) {
  if (!acting_) return;
  ::ptrace(static_cast<__ptrace_request>(request), pid_, nullptr, passed_on_);
  settle();
}

/// A repeated string instruction counts as one, however often it repeats itself.
void Stepped::step() {
  const std::uintptr_t from = at_;
  do go(PTRACE_SINGLESTEP);
  while (acting_ && at_ == from);
}

bool Stepped::run_to(std::uintptr_t address, std::uint32_t time) {
  constexpr unsigned long kBothOn = 1U << 0 | 1U << 2;  // for this thread alone, before execution
  if (!set_debug_word(0, address) || !set_debug_word(1, kOver) || !set_debug_word(7, kBothOn))
    return false;
  if (at_ == address) --time;
  while (acting_ && time > 0) {
    go(PTRACE_CONT);
    if (acting_ && at_ == address) --time;
  }
  set_debug_word(7, 0);  // a step that begins at a breakpoint would not move
  return true;
}

/// The words of the processor's debug registers: 0 to 3 hold addresses, 7 says which of them count.
bool Stepped::set_debug_word([[maybe_unused]] unsigned number,
                             [[maybe_unused]] std::uintptr_t value) const {
#if defined(__x86_64__)
  return ::ptrace(PTRACE_POKEUSER, pid_,
                  offsetof(user, u_debugreg) + number * sizeof(user::u_debugreg[0]), value) == 0;
#else
  return false;
#endif
}

void Stepped::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (pid_ >= 0) settle();
}

std::string Stepped::finish() {
  if (pid_ >= 0) {
    ::ptrace(PTRACE_DETACH, pid_, nullptr, passed_on_);
    acting_ = false;
    while (pid_ >= 0) settle();
  }
  if (WIFSIGNALED(status_)) return "ended by signal " + std::to_string(WTERMSIG(status_));
  return WEXITSTATUS(status_) == 0 ? ""
                                   : "failed with status " + std::to_string(WEXITSTATUS(status_));
}

bool Stepped::threw() const {
  return pid_ < 0 && WIFEXITED(status_) && WEXITSTATUS(status_) == kThrew;
}

}  // namespace ojs_shm::test
