// SPDX-License-Identifier: Apache-2.0
// A client of the gateway, which runs in this process on a segment of its own: whatever is sent,
// the gateway answers with HTTP whose JSON is JSON, never that it failed, and leaves the segment in
// order.
//
// Input: requests, each begun by the byte 30. "!" and then bytes as they are sent; else a method
// and a target, lines of the header, an empty line and the body. @0 to @9 stand for the ids of the
// latest jobs.
#include <sys/socket.h>
#include <unistd.h>
#include <ojs_shm/observer.hpp>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/input.hpp"
#include "tests/fuzz/lived_in.hpp"
#include "tests/fuzz/surroundings.hpp"
#include "tools/gateway/serving/server.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::fuzz {
namespace {

namespace asio = boost::asio;
using internal::Attachment;

constexpr char kNext = 30;

std::string_view cut(std::string_view& rest, std::string_view separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + separator.size(), rest.size()));
  return part;
}

Segment fresh_segment() {
  SegmentOptions options;
  options.slots = 96;
  options.max_queues = 4;
  options.max_body_bytes = 16'384;
  options.max_handles = 32;
  std::filesystem::remove(internal::path_of(segment_name()));
  const auto made = Attachment::create(segment_name(), options, Attachment::Role::kBroker);
  require(made.ok(), made.ok() ? "" : made.error().message);
  return Segment::of(*made);
}

gateway::Options options() {
  gateway::Options options;
  options.where = segment_name();
  options.test_hooks = true;
  options.threads = 1;
  options.max_body_bytes = 4096;
  options.max_header_bytes = 2048;
  return options;
}

/// The gateway with one connection to it. Its loops run where the client waits for them.
class Client {
 public:
  Client() : certificate_("", ""), hall_(options(), fresh_segment()), server_(hall_, certificate_) {
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0,
            "no sockets");
    socket_ = ends[0];
    gateway::Shift& shift = server_.first_shift();
    gateway::Socket served(shift.context());
    served.assign(asio::generic::stream_protocol(AF_UNIX, 0), ends[1]);
    asio::co_spawn(
        shift.context(),
        [this, &shift, served = std::move(served)]() mutable -> asio::awaitable<void> {
          gateway::Session session(std::move(served), server_, shift);
          co_await session.converse();
        },
        [this](const std::exception_ptr& failed) {
          require(!failed, "a connection ended by an exception");
          ended_ = true;
        });
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;

  bool ended() const { return ended_; }
  void send(std::string_view bytes) {
    while (!bytes.empty() && !ended_) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
      if (sent < 0 && !run()) return;
    }
  }
  /// What the gateway says until it waits, for this client or for anything else.
  std::string listen() {
    while (run()) {}
    return std::exchange(heard_, {});
  }
  void leave() {
    ::shutdown(socket_, SHUT_WR);
    while (!ended_)
      if (!run()) server_.first_shift().context().run_one_for(std::chrono::milliseconds(5));
  }
  gateway::Hall& hall() { return hall_; }

 private:
  /// False when there was nothing to do.
  bool run() {
    bool ran = false;
    for (asio::io_context* loop :
         {&server_.first_shift().context(), &server_.back_room().context()}) {
      loop->restart();
      ran = loop->poll() != 0 || ran;
    }
    std::array<char, 4096> buffer;
    for (ssize_t got; (got = ::recv(socket_, buffer.data(), buffer.size(), 0)) > 0; ran = true)
      heard_.append(buffer.data(), static_cast<std::size_t>(got));
    return ran;
  }

  gateway::Certificate certificate_;
  gateway::Hall hall_;
  gateway::Server server_;
  int socket_ = -1;
  bool ended_ = false;
  std::string heard_;
};

/// Of one reply, which is there as a whole.
void judge(std::string_view reply, bool head_only) {
  std::string_view body = reply;
  const std::string_view head = cut(body, "\r\n\r\n");
  require(head.starts_with("HTTP/1.1 ") && head.size() > 12, "no HTTP");
  require(!head.starts_with("HTTP/1.1 500"), "the gateway failed");
  if (head_only) require(body.empty(), "a body behind the reply to HEAD");
  if (!head_only && head.find("json\r\n") != std::string_view::npos)
    require(json::check(body).ok(), "a reply that is no JSON");
}

class Conversation {
 public:
  void say(std::string_view request) {
    if (request.starts_with('!')) {
      client_.send(request.substr(1));
      (void)client_.listen();  // to half a request, or to several
      in_step_ = false;
      return;
    }
    std::string_view body = request;
    const std::string head = filled(cut(body, "\n\n"));
    std::string_view lines = head;
    const std::string_view first = cut(lines, "\n");
    const std::string sent = filled(body);
    std::string text = std::string(first) + " HTTP/1.1\r\nHost: localhost\r\n";
    while (!lines.empty()) text.append(cut(lines, "\n")).append("\r\n");
    if (!sent.empty())
      text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(sent.size()) +
              "\r\n";
    client_.send(text + "\r\n" + sent);
    const std::string heard = client_.listen();
    std::string_view reply = heard;
    if (reply.starts_with("HTTP/1.1 100 ")) cut(reply, "\r\n\r\n");
    if (reply.empty() || request.find('\r') != std::string_view::npos) in_step_ = false;
    if (in_step_ && reply.find("chunked") == std::string_view::npos)
      judge(reply, first.starts_with("HEAD "));
    remember(heard);
  }
  bool over() const { return client_.ended(); }
  void leave() {
    client_.leave();
    const auto seen = Observer::attach(client_.hall().segment());
    require(seen.ok(), "no observer");
    for (const Violation& each : seen->audit()) broken("audit: " + each.text);
  }

 private:
  std::string filled(std::string_view text) const {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool id = text[i] == '@' && i + 1 < text.size() && text[i + 1] >= '0' &&
                      text[i + 1] <= '9' && !ids_.empty();
      out += id ? ids_[static_cast<std::size_t>(text[++i] - '0') % ids_.size()]
                : std::string(1, text[i]);
    }
    return out;
  }
  void remember(std::string_view reply) {
    constexpr std::string_view kId = "\"id\":\"";
    for (std::size_t at = 0; (at = reply.find(kId, at)) != std::string_view::npos;) {
      at += kId.size();
      if (reply.size() > at + 36 && reply[at + 36] == '"')
        ids_.insert(ids_.begin(), std::string(reply.substr(at, 36)));
    }
    if (ids_.size() > 10) ids_.resize(10);
  }

  Client client_;
  std::vector<std::string> ids_;
  bool in_step_ = true;  // each request so far had its one reply
};

}  // namespace
}  // namespace ojs_shm::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ojs_shm::fuzz;
  begin_run();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  Conversation conversation;
  for (int requests = 0; requests < 16 && !rest.empty() && !conversation.over(); ++requests)
    conversation.say(cut(rest, std::string_view(&kNext, 1)));
  conversation.leave();
  return 0;
}
