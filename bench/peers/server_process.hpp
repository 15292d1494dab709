// SPDX-License-Identifier: Apache-2.0
//
// A peer's server: started for one run in a directory of its own, on a Unix socket or a port of
// loopback, and stopped by its pid.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace ojs_shm::bench {

/// A directory under the system's temporary one, removed with all it holds.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class ServerProcess {
 public:
  /// Starts `program` (found on PATH) and returns when `socket` accepts a connection. Throws when
  /// it does not in ten seconds.
  ServerProcess(std::vector<std::string> program, const std::filesystem::path& socket);
  /// The same with a port of loopback, and on that core alone.
  ServerProcess(std::vector<std::string> program, std::uint16_t port, unsigned core);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

 private:
  void start(std::vector<std::string>& program, const std::function<int()>& connect, int core);
  pid_t pid_ = -1;
};

/// A stream connected to the Unix socket at `path`. Throws when no process listens.
int connect_to(const std::filesystem::path& path);

/// Whether `program` can be started from PATH; a peer whose server is not installed is left out of
/// the run.
bool is_installed(const std::string& program);

}  // namespace ojs_shm::bench
