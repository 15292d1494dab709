// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/server_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "bench/load.hpp"

namespace ojs_shm::bench {

namespace {

constexpr int kAnyCore = -1;

std::filesystem::path find_program(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders((path != nullptr ? std::string(path) : std::string()) +
                             ":/usr/bin:/usr/sbin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path candidate = std::filesystem::path(folder) / program;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "ojs-shm-bench.XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

ServerProcess::ServerProcess(std::vector<std::string> program,
                             const std::filesystem::path& socket) {
  start(
      program, [&] { return connect_to(socket); }, kAnyCore);
}

ServerProcess::ServerProcess(std::vector<std::string> program, std::uint16_t port, unsigned core) {
  start(
      program, [&] { return connect_to(port); }, static_cast<int>(core));
}

void ServerProcess::start(std::vector<std::string>& program, const std::function<int()>& connect,
                          int core) {
  const std::filesystem::path file = find_program(program.front());
  if (file.empty()) throw std::runtime_error(program.front() + " is not installed");
  std::vector<char*> argv;
  for (std::string& word : program) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (core != kAnyCore) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(static_cast<unsigned>(core), &one);
      ::sched_setaffinity(0, sizeof one, &one);
    }
    const int nowhere = ::open("/dev/null", O_RDWR);
    ::dup2(nowhere, 0);
    ::dup2(nowhere, 1);
    ::dup2(nowhere, 2);
    ::execv(file.c_str(), argv.data());
    ::_exit(127);
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < give_up) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      throw std::runtime_error(program.front() + " ended while starting");
    }
    try {
      ::close(connect());
      return;
    } catch (const std::system_error&) {
      ::poll(nullptr, 0, 2);  // it listens when it is ready; there is nothing else to wait on
    }
  }
  throw std::runtime_error(program.front() + " does not listen");
}

ServerProcess::~ServerProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

int connect_to(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path)
    throw std::runtime_error(path.string() + " is too long for a socket");
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "socket");
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int why = errno;
    ::close(fd);
    throw std::system_error(why, std::generic_category(), "connect to " + path.string());
  }
  return fd;
}

bool is_installed(const std::string& program) { return !find_program(program).empty(); }

}  // namespace ojs_shm::bench
