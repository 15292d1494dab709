// SPDX-License-Identifier: Apache-2.0
//
// What HTTP alone costs: a Boost.Beast server that answers each request with its own body.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace ojs_shm::bench {

/// In a process of its own, on one core, until this object goes.
class HttpEcho {
 public:
  explicit HttpEcho(unsigned core);
  HttpEcho(const HttpEcho&) = delete;
  HttpEcho& operator=(const HttpEcho&) = delete;
  ~HttpEcho();
  std::uint16_t port() const { return port_; }

 private:
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace ojs_shm::bench
