// SPDX-License-Identifier: Apache-2.0
#include "bench/peers/beanstalkd.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace ojs_shm::bench {

Beanstalkd::Connection::~Connection() { ::close(fd_); }

void Beanstalkd::Connection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) throw std::system_error(errno, std::generic_category(), "send to beanstalkd");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void Beanstalkd::Connection::read_more() {
  char bytes[4096];
  const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
  if (got <= 0) throw std::system_error(errno, std::generic_category(), "receive from beanstalkd");
  buffer_.append(bytes, static_cast<std::size_t>(got));
}

std::string_view Beanstalkd::Connection::read_line() {
  buffer_.erase(0, used_);
  used_ = 0;
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos) read_more();
  used_ = end + 2;
  return {buffer_.data(), end};
}

void Beanstalkd::Connection::read_body(Body& out) {
  while (buffer_.size() < used_ + sizeof out + 2) read_more();
  std::memcpy(out.bytes, buffer_.data() + used_, sizeof out);
  used_ += sizeof out + 2;
}

void Beanstalkd::Producer::enqueue(unsigned level, const Body& body) {
  constexpr const char* kNoDelayOneMinuteToRun = " 0 60 ";
  std::string request = "put " + std::to_string(level) + kNoDelayOneMinuteToRun +
                        std::to_string(sizeof body) + "\r\n";
  request.append(body.bytes, sizeof body);
  request += "\r\n";
  connection_.send(request);
  const std::string_view answer = connection_.read_line();
  if (!answer.starts_with("INSERTED "))
    throw std::runtime_error("beanstalkd put: " + std::string(answer));
}

bool Beanstalkd::Worker::reserve(Body& out, unsigned seconds) {
  connection_.send("reserve-with-timeout " + std::to_string(seconds) + "\r\n");
  const std::string_view answer = connection_.read_line();
  if (answer == "TIMED_OUT") return false;
  constexpr std::string_view kReserved = "RESERVED ";
  if (!answer.starts_with(kReserved))
    throw std::runtime_error("beanstalkd reserve: " + std::string(answer));
  job_ = answer.substr(kReserved.size(), answer.rfind(' ') - kReserved.size());
  connection_.read_body(out);
  return true;
}

void Beanstalkd::Worker::ack() {
  connection_.send("delete " + job_ + "\r\n");
  const std::string_view answer = connection_.read_line();
  if (answer != "DELETED") throw std::runtime_error("beanstalkd delete: " + std::string(answer));
}

}  // namespace ojs_shm::bench
