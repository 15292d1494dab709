// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <ojs_shm/segment.hpp>

namespace ojs_shm::gateway {

struct Options {
  SegmentName where;
  std::string listen = "127.0.0.1:8080";
  std::string token_file;
  std::string tls_certificate, tls_key;  ///< PEM files; both or none
  bool open = false;                     ///< beyond loopback without tokens
  bool test_hooks = false;
  bool no_events = false;  ///< do not switch the segment's events on
  unsigned threads = 0;    ///< that serve requests; 0: as many as cores, at most 4
  std::uint32_t max_connections = 8192;
  std::uint32_t max_streams = 100;  ///< of one client at once, WebSockets included
  std::uint64_t max_body_bytes = 1 << 20;
  std::uint32_t max_header_bytes = 16 * 1024;
  std::chrono::milliseconds idle_time{75'000};     ///< between requests of a connection
  std::chrono::milliseconds request_time{10'000};  ///< from a request's first byte to its last
  std::chrono::milliseconds write_time{
      30'000};  ///< for a client to take a reply or a piece of a stream
  std::chrono::milliseconds drain_time{10'000};
};

}  // namespace ojs_shm::gateway
