// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/serving/session.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>

#include "tools/gateway/page/browser.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/router.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "tools/gateway/serving/request_parser.hpp"
#include "tools/gateway/serving/server.hpp"

namespace ojs_shm::gateway {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

constexpr std::chrono::milliseconds kGlance{100};

/// What has been read already, as far as it belongs to this request.
void parse(beast::flat_buffer& buffer, RequestParser& parser, beast::error_code& failed) {
  while (buffer.size() != 0 && !parser.is_done() && !failed)
    buffer.consume(parser.put(buffer.data(), failed));
  if (failed == http::error::need_more) failed = {};
}

/// Also of a request whose first line the parser refuses, which stays in the buffer then.
bool asks_for_head_alone(const Request& request, const beast::flat_buffer& buffer) {
  const std::string_view unread(static_cast<const char*>(buffer.data().data()), buffer.size());
  return request.method == "HEAD" || unread.starts_with("HEAD ");
}

/// Messages would be lost that came ahead of the handshake's answer.
Fault sent_ahead() {
  return invalid_request("a WebSocket's first message comes behind the answer to its handshake");
}

/// The rest of a reply behind its first bytes.
std::array<asio::const_buffer, 2> behind(std::array<asio::const_buffer, 2> parts,
                                         std::size_t bytes) {
  const std::size_t of_first = std::min(bytes, parts[0].size());
  parts[0] += of_first;
  parts[1] += bytes - of_first;
  return parts;
}

}  // namespace

Session::Session(Socket socket, Server& server, Shift& shift)
    : server_(server),
      shift_(shift),
      stream_(std::move(socket), server.certificate().context()),
      watched_(shift.watch(stream_)),
      timer_(stream_.get_executor()),
      glance_(stream_.get_executor()),
      buffer_(server.hall().options().max_header_bytes + 64 * 1024),
      self_(std::make_shared<Session*>(this)) {
  server_.came(*this);
}

Session::~Session() {
  *self_ = nullptr;
  server_.went(*this);
  shift_.leave(watched_);
}

void Session::close_soon() {
  closing_ = true;
  wake();
  if (idle_) stream_.break_off();
}

void Session::close_now() {
  gone_ = true;
  stream_.close();
  wake();
}

asio::awaitable<void> Session::converse() {
  idle_ = true;
  bool goes_on = co_await stream_.greet(server_.hall().options().request_time);
  idle_ = false;
  while (goes_on && !closing_) goes_on = co_await serve_one();
  co_await stream_.part();
  if (!sends_on_ || closing_) co_return;
  idle_ = true;
  co_await stream_.hear_out(server_.hall().options().request_time);
  idle_ = false;
}

/// What is answered to a request that cannot be read; nothing when its client has gone. A body that
/// is too long is told with its length, where the client says it. Source: ojs-payload-limits 9.1.
std::optional<Fault> Session::fault_of(beast::error_code failed,
                                       const RequestParser& parser) const {
  if (failed == http::error::header_limit || failed == http::error::buffer_overflow)
    return Fault{.status = 431,
                 .code = "invalid_request",
                 .message = "the header of the request is too long"};
  if (failed == http::error::body_limit) {
    const std::uint64_t most = server_.hall().options().max_body_bytes;
    Fault fault{.status = 413, .code = "envelope_too_large"};
    fault.message =
        fmt::format("the body of the request is too long: at most {} bytes are taken", most);
    fault.details = {{"field", quoted("envelope")}, {"max_bytes", std::to_string(most)}};
    const std::string_view target = parser.target();
    if (target == "/ojs/v1/workers/ack" ||
        (target.starts_with("/ojs/v1/jobs/") && target.ends_with("/ack")))
      fault.code = "RESULT_TOO_LARGE";
    if (const std::uint64_t length = parser.announced_bytes(); length != 0)
      fault.details.emplace_back("actual_bytes", std::to_string(length));
    return fault;
  }
  if (failed.category() == make_error_code(http::error::end_of_stream).category() &&
      failed != http::error::end_of_stream && failed != http::error::partial_message)
    return invalid_request("this is not an HTTP request: " + failed.message());
  return {};
}

asio::awaitable<bool> Session::read_head(RequestParser& parser) {
  const Options& options = server_.hall().options();
  beast::error_code failed;
  if (buffer_.size() == 0) {
    idle_ = true;
    stream_.expires_after(options.idle_time);
    const std::size_t got = co_await stream_.async_read_some(
        buffer_.prepare(4096), asio::redirect_error(asio::use_awaitable, failed));
    idle_ = false;
    if (failed || closing_) co_return false;
    buffer_.commit(got);
  }
  parser.header_limit(options.max_header_bytes);
  parser.body_limit(options.max_body_bytes);
  parse(buffer_, parser, failed);
  if (!failed && parser.is_done()) co_return true;
  stream_.expires_after(options.request_time);
  if (!failed && !parser.is_header_done())
    co_await http::async_read_header(stream_, buffer_, parser,
                                     asio::redirect_error(asio::use_awaitable, failed));
  if (!failed) co_return true;
  const std::optional<Fault> fault = fault_of(failed, parser);
  if (fault) co_await refuse(parser, *fault);
  co_return false;
}

asio::awaitable<bool> Session::read_body(RequestParser& parser) {
  beast::error_code failed;
  if (parser.expects_continue()) {
    http::response<http::empty_body> go_on{http::status::continue_, 11};
    co_await http::async_write(stream_, go_on, asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return false;
  }
  co_await http::async_read(stream_, buffer_, parser,
                            asio::redirect_error(asio::use_awaitable, failed));
  const std::optional<Fault> fault = fault_of(failed, parser);
  if (fault) co_await refuse(parser, *fault);
  co_return !failed;
}

asio::awaitable<void> Session::refuse(RequestParser& parser, const Fault& fault) {
  sends_on_ = true;
  Request request;
  if (asks_for_head_alone(parser.request(), buffer_)) request.method = "HEAD";
  request.id = server_.new_request_id();
  request_id_ = request.id;
  const Reply reply = reply_of(fault, request);
  write_now(reply, request, false);
  co_await write_rest();
}

asio::awaitable<bool> Session::serve_one() {
  RequestParser parser;
  if (!co_await read_head(parser)) co_return false;
  if (!parser.is_done() && !co_await read_body(parser)) co_return false;
  stream_.expires_never();
  Request& request = parser.request();
  if (request.id.empty()) request.id = server_.new_request_id();
  request_id_ = request.id;
  head_alone_ = request.method == "HEAD";
  knows_chunks_ = parser.http_version() >= 11;
  Reply reply;
  try {
    read_target(parser.target(), request);
    const Route& route = admitted(request);
    const auto* const handler = std::get_if<Handler>(&route.handler);
    const auto* const waiter = std::get_if<Waiter>(&route.handler);
    if (handler != nullptr && route.pace == Pace::kQuick)
      reply = (*handler)(shift_.desk(), request);
    else if (waiter != nullptr)
      reply = co_await (*waiter)(shift_.desk(), request, *this);
    else
      reply = co_await answer_slowly(route, request);
  } catch (const Fault& fault) {
    reply = reply_of(fault, request);
  } catch (const std::exception& problem) {
    spdlog::error("{} {}: {}", request.method, request.path, problem.what());
    reply = reply_of(Fault{.status = 500,
                           .code = "backend_error",
                           .message = "the gateway failed; its log says more",
                           .retryable = true},
                     request);
  }
  if (streaming_) co_return false;
  // What is handed over goes only to a client that is there as far as the kernel knows.
  if (gone_ || (reply.sent && stream_.client_has_closed())) {
    if (reply.sent) reply.sent(false);
    co_return false;
  }
  const bool keep_alive = parser.keep_alive() && !closing_ && !sends_on_;
  write_now(reply, request, keep_alive);
  bool delivered = true;
  if (asio::buffer_size(unsent_) != 0) delivered = co_await write_rest();
  if (reply.sent) reply.sent(delivered);
  co_return delivered&& keep_alive;
}

const Route& Session::admitted(Request& request) {
  const Route& route = server_.router().find(request);
  Hall& hall = server_.hall();
  if (hall.tokens().empty()) admit_page(request, hall.loopback_alone);
  admit(request, route, hall.tokens());
  return route;
}

asio::awaitable<Reply> Session::answer_slowly(const Route& route, const Request& request) {
  if (const auto* handler = std::get_if<Handler>(&route.handler)) {
    const auto slowly = [&]() -> asio::awaitable<Reply> {
      co_return (*handler)(server_.back_desk(), request);
    };
    co_return co_await asio::co_spawn(server_.back_room(), slowly, asio::use_awaitable);
  }
  const StreamCount::Place place = stream_place(request);
  co_await std::get<Streamer>(route.handler)(shift_.desk(), request, *this);
  if (streaming_ && knows_chunks_ && !talk_ && !gone_) {
    beast::error_code ignored;
    stream_.expires_after(server_.hall().options().write_time);
    co_await asio::async_write(stream_, http::make_chunk_last(),
                               asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return Reply();
}

StreamCount::Place Session::stream_place(const Request& request) {
  Hall& hall = server_.hall();
  const std::string_view token = Tokens::token_in(request.header("authorization"));
  const bool by_token = !hall.tokens().empty();
  auto place =
      hall.streams().take(by_token ? "token " + std::string(token) : stream_.client_address());
  if (place) return std::move(*place);
  Fault fault{.status = 429, .code = "rate_limited", .retryable = true};
  fault.message = fmt::format("this {} has {} event streams and WebSockets, as many as it may have",
                              by_token ? "token" : "address", hall.options().max_streams);
  fault.hint = "End one of them, or start the gateway with a higher --max-streams.";
  throw fault;
}

/// Written as one text: a serializer of fields costs more than all that they say.
void Session::print_head(const Reply& reply, const Request& request, bool keep_alive) {
  const auto reason = http::obsolete_reason(http::int_to_status(reply.status));
  head_.clear();
  head_.append("HTTP/1.1 ").append(std::to_string(reply.status)).append(" ");
  head_.append(reason.data(), reason.size());
  const auto add = [this](std::string_view name, std::string_view value) {
    head_.append(name).append(": ").append(value).append("\r\n");
  };
  head_ +=
      "\r\nServer: ojs-shm-gateway\r\nOJS-Version: 1.0\r\nX-OJS-Version: 1.0\r\n"
      "X-Content-Type-Options: nosniff\r\n";
  add("X-Request-ID", request.id);
  if (reply.status != 204) {
    add("Content-Type", reply.content_type.empty() ? negotiated_type(request.header("accept"))
                                                   : std::string_view(reply.content_type));
    add("Content-Length", std::to_string(reply.body.size()));
  }
  for (const auto& [name, value] : reply.headers) add(name, value);
  if (!keep_alive)
    add("Connection", "close");
  else if (!knows_chunks_)
    add("Connection", "keep-alive");  // HTTP/1.0 closes unless it is told not to
  head_.append("\r\n");
}

void Session::write_now(const Reply& reply, const Request& request, bool keep_alive) {
  print_head(reply, request, keep_alive);
  const bool has_body = request.method != "HEAD" && reply.status != 204;
  unsent_ = {asio::buffer(head_), has_body ? asio::buffer(reply.body) : asio::const_buffer()};
  unsent_ = behind(unsent_, stream_.write_now(unsent_));
}

asio::awaitable<bool> Session::write_rest() {
  beast::error_code failed;
  stream_.expires_after(server_.hall().options().write_time);
  co_await asio::async_write(stream_, unsent_, asio::redirect_error(asio::use_awaitable, failed));
  co_return !failed;
}

/// A client that goes while its request waits is noticed: its end of the connection is closed. What
/// it sent ahead, a request or TLS's close_notify, stays unread, so that the end behind it is
/// looked for now and then.
void Session::watch_for_end() {
  if (watching_) return;
  watching_ = true;
  stream_.watch([self = self_](const beast::error_code& failed) {
    if (*self == nullptr) return;
    Session& session = **self;
    session.watching_ = false;
    if (failed || !session.sleeping_) return;
    if (session.stream_.client_has_closed()) {
      session.gone_ = true;
      session.wake();
      return;
    }
    session.watching_ = true;
    session.glance_.expires_after(kGlance);
    session.glance_.async_wait([self](const beast::error_code& ended) {
      if (*self == nullptr) return;
      (*self)->watching_ = false;
      if (!ended && (*self)->sleeping_) (*self)->watch_for_end();
    });
  });
}

asio::awaitable<void> Session::sleep(std::chrono::milliseconds time) {
  if (over()) co_return;
  watch_for_end();
  sleeping_ = true;
  beast::error_code woken;
  timer_.expires_after(std::max(time, std::chrono::milliseconds(1)));
  co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  sleeping_ = false;
}

asio::awaitable<void> Session::begin_stream() {
  http::response<http::empty_body> head{http::status::ok, 11};
  head.set(http::field::server, "ojs-shm-gateway");
  head.set("OJS-Version", "1.0");
  head.set("X-Request-ID", request_id_);
  head.set(http::field::content_type, "text/event-stream");
  head.set(http::field::cache_control, "no-cache");
  head.keep_alive(false);
  if (knows_chunks_) head.chunked(true);
  http::response_serializer<http::empty_body> serializer{head};
  beast::error_code failed;
  streaming_ = true;
  stream_.expires_after(server_.hall().options().write_time);
  co_await http::async_write_header(stream_, serializer,
                                    asio::redirect_error(asio::use_awaitable, failed));
  stream_.expires_never();
  if (failed || head_alone_) gone_ = true;
}

asio::awaitable<void> Session::send(std::string_view text) {
  if (gone_ || text.empty()) co_return;
  beast::error_code failed;
  stream_.expires_after(server_.hall().options().write_time);
  const asio::const_buffer piece = asio::buffer(text.data(), text.size());
  if (knows_chunks_)
    co_await asio::async_write(stream_, http::make_chunk(piece),
                               asio::redirect_error(asio::use_awaitable, failed));
  else
    co_await asio::async_write(stream_, piece, asio::redirect_error(asio::use_awaitable, failed));
  stream_.expires_never();
  if (failed) gone_ = true;
}

asio::awaitable<void> Session::begin_talk(const Request& request, std::string_view subprotocol) {
  sends_on_ = true;
  if (buffer_.size() != 0) throw sent_ahead();
  streaming_ = true;
  // GCC 12 lays out a wrong frame for `if (co_await talk_->begin(...))`.
  Talk& talk = talk_.emplace(stream_, server_.hall().options().write_time);
  const bool begun = co_await talk.begin(request, subprotocol);
  gone_ = gone_ || !begun;
}

}  // namespace ojs_shm::gateway
