// SPDX-License-Identifier: Apache-2.0
//
// What happens, in the channels of a WebSocket.
#include "tools/gateway/streams/channels.hpp"

#include <spdlog/fmt/fmt.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <utility>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/serving/talk.hpp"
#include "tools/gateway/streams/job_streams.hpp"
#include "tools/gateway/streams/listener.hpp"
#include "tools/shell/known_id.hpp"
#include "worker_api/json/envelope.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

namespace asio = boost::asio;
using Clock = Talk::Clock;

/// Source: ojs-realtime 3.5.
constexpr std::chrono::seconds kPing{15}, kPong{10};
/// A little more than Talk::end() takes at most.
constexpr std::chrono::seconds kLastMoment{3};
constexpr std::string_view kJob = "job:", kQueue = "queue:", kAll = "all";

std::string said(std::string_view type, std::string_view channel) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("type", type);
    writer.text("channel", channel);
  });
}

Fault upgrade_required(std::string message) {
  Fault fault{.status = 426, .code = "invalid_request", .message = std::move(message)};
  fault.headers = {{"Upgrade", "websocket"}, {"Sec-WebSocket-Version", "13"}};
  return fault;
}

/// Source: RFC 6455 4.2.1.
void check_handshake(const Request& request) {
  constexpr std::size_t kKeyLength = 24;  // 16 bytes in base64
  const std::string upgrade(request.header("upgrade"));
  if (request.method != "GET" || request.header("connection") != "upgrade" ||
      !boost::beast::http::token_list(upgrade).exists("websocket"))
    throw upgrade_required("a WebSocket is opened by GET with Upgrade: websocket");
  if (request.header("sec-websocket-version") != "13")
    throw upgrade_required("Sec-WebSocket-Version must be 13");
  if (request.header("host").empty()) throw invalid_request("a WebSocket's request needs a Host");
  if (request.header("sec-websocket-key").size() != kKeyLength)
    throw invalid_request("Sec-WebSocket-Key must be 16 bytes in base64");
}

std::string refused(const Fault& fault) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("type", "error");
    writer.text("code", fault.code);
    writer.text("message", fault.message);
  });
}

/// Of all channels alike.
std::string system_message(Desk& desk, std::string_view event, std::string_view data) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("type", "event");
    writer.text("event", event);
    writer.value("data", data);
    writer.text("timestamp", print_timestamp(desk.now_ms()));
  });
}

std::string gap_message(Desk& desk, std::optional<std::uint64_t> lost) {
  return system_message(desk, "system.gap", object([&](json::ObjectWriter& data) {
                          data.value("lost", lost ? std::to_string(*lost) : "null");
                        }));
}

/// When it happened, as the event's own text says.
std::string_view time_in(std::string_view event) {
  for (const json::Member& member : json::members_of(event))
    if (member.name == "time" || member.name == "timestamp") return member.value;
  return "null";
}

std::string message_of(const Told& told, std::string_view channel) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("type", "event");
    writer.text("channel", channel);
    writer.text("event", told.type);
    writer.value("data", told.json);
    writer.text("id", told.id);
    writer.value("timestamp", time_in(told.json));
  });
}

/// Hears the client's messages and answers them one after the other, and says what happens
/// meanwhile.
class Conversation {
 public:
  Conversation(Desk& desk, Visit& visit, Talk& talk, Channels channels)
      : desk_(desk),
        visit_(visit),
        talk_(talk),
        channels_(std::move(channels)),
        listener_(desk.hall, visit, {}),
        answered_(visit.shift().context(), Clock::time_point::max()),
        last_moment_(visit.shift().context(), Clock::time_point::max()) {}

  asio::awaitable<void> run() {
    using namespace asio::experimental::awaitable_operators;
    co_await ((hear_all() && say_all()) || last_moment());
  }

 private:
  asio::awaitable<void> hear_all() {
    while (auto message = co_await talk_.hear()) {
      heard_ = std::move(message);
      visit_.wake();
      boost::system::error_code woken;
      while (heard_ && !over_)
        co_await answered_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    }
    over_ = true;
    visit_.wake();
  }

  asio::awaitable<void> say_all() {
    while (!over_ && !visit_.over()) {
      co_await say(answers());
      co_await look_after_client();
      co_await say(news());  // last, so that no event comes between this look and the sleep
      if (!heard_ && !has_news_ && !over_)
        co_await visit_.sleep(std::chrono::ceil<std::chrono::milliseconds>(due() - Clock::now()));
    }
    const bool leaves = visit_.closing() && !over_;
    if (leaves) co_await talk_.say(system_message(desk_, "server.shutdown", "{}"));
    over_ = true;
    answered_.cancel();
    last_moment_.expires_after(kLastMoment);
    if (leaves) co_await talk_.end(Talk::CloseCode::going_away);
  }

  /// Closes the connection a while after the last message. A client that reads nothing would hold
  /// up Beast's own answers for good, and one that sends half a message the farewell.
  asio::awaitable<void> last_moment() {
    boost::system::error_code set_anew = asio::error::operation_aborted;
    while (set_anew)
      co_await last_moment_.async_wait(asio::redirect_error(asio::use_awaitable, set_anew));
    talk_.break_off();
  }

  std::vector<std::string> answers() {
    if (!heard_) return {};
    const std::string message = std::exchange(heard_, std::nullopt).value();
    answered_.cancel();
    return channels_.answer(message);
  }

  std::vector<std::string> news() {
    std::vector<std::string> messages;
    Tape::Gap gap;
    const auto events = listener_.read(gap);
    if (gap.there) messages.push_back(gap_message(desk_, gap.lost));
    for (const auto& told : events) {
      if (told->lost != 0)
        messages.push_back(gap_message(desk_, told->lost));
      else
        channels_.tell(*told, messages);
    }
    has_news_ = gap.there || !events.empty();
    return messages;
  }

  asio::awaitable<void> say(std::vector<std::string> messages) {
    for (std::size_t i = 0; i < messages.size() && !over_ && !visit_.over(); ++i) {
      const bool taken = co_await talk_.say(messages[i]);
      over_ = over_ || !taken;
    }
  }

  bool awaits_pong() const { return talk_.last_pong() < pinged_; }
  Clock::time_point due() const { return pinged_ + (awaits_pong() ? kPong : kPing); }

  /// Asks now and then whether it is there, and gives it up when it has not answered.
  asio::awaitable<void> look_after_client() {
    if (over_ || heard_ || Clock::now() < due()) co_return;  // behind a message there may be a pong
    if (awaits_pong()) {
      talk_.break_off();
      over_ = true;
      co_return;
    }
    pinged_ = Clock::now();
    co_await talk_.ping();
  }

  Desk& desk_;
  Visit& visit_;
  Talk& talk_;
  Channels channels_;
  Listener listener_;
  asio::steady_timer answered_;  ///< what was heard
  asio::steady_timer last_moment_;
  std::optional<std::string> heard_ = {};
  Clock::time_point pinged_ = talk_.last_pong();
  bool has_news_ = false, over_ = false;
};

}  // namespace

std::string Channels::known(std::string channel) const {
  if (channel == kAll) return channel;
  if (channel.starts_with(kJob)) {
    const std::string id = shell::known_id(channel.substr(kJob.size()));
    const JobInfo job = must(desk_.observer.get(id), id);
    if (!filter_.tenant.empty() && tenant_of(job.extra) != filter_.tenant)
      throw not_found("job", id);
    return std::string(kJob) + id;
  }
  if (!channel.starts_with(kQueue))
    throw invalid_request("channel must be job:ID, queue:NAME or all", "channel");
  const std::string queue = channel.substr(kQueue.size());
  if (!desk_.observer.queue(queue)) throw not_found("queue", queue);
  return channel;
}

std::vector<std::string> Channels::subscribe(std::string channel) {
  channel = known(std::move(channel));
  if (channels_.size() == kMost && !channels_.contains(channel))
    throw invalid_request(fmt::format("a WebSocket has at most {} channels", kMost), "channel");
  channels_.insert(channel);
  std::vector<std::string> answer = {said("subscribed", channel)};
  // A job that has ended will say nothing more.
  if (!channel.starts_with(kJob)) return answer;
  const auto job = desk_.observer.get(channel.substr(kJob.size()));
  if (!job || !is_terminal(job->state)) return answer;
  const EventFilter of_ends{
      .types = filter_.types, .job_types = filter_.job_types, .state_changes = true};
  if (const Told end = end_of(desk_, *job); of_ends.lets_pass(end))
    answer.push_back(message_of(end, channel));
  return answer;
}

std::vector<std::string> Channels::answer(std::string_view message) try {
  Request request;
  request.body = message;
  const Body body(request);
  const std::string action = body.required_text("action");
  std::string channel = body.required_text("channel");
  if (action == "subscribe") return subscribe(std::move(channel));
  if (action != "unsubscribe")
    throw invalid_request("action must be subscribe or unsubscribe", "action");
  if (channel.starts_with(kJob))
    channel = std::string(kJob) + shell::known_id(channel.substr(kJob.size()));
  channels_.erase(channel);
  return {said("unsubscribed", channel)};
} catch (const Fault& fault) {
  return {refused(fault)};
}

void Channels::tell(const Told& told, std::vector<std::string>& messages) const {
  if (channels_.empty() || !filter_.lets_pass(told)) return;
  for (const std::string& channel :
       {std::string(kJob) + told.job_id, std::string(kQueue) + told.queue, std::string(kAll)})
    if (channels_.contains(channel)) messages.push_back(message_of(told, channel));
}

asio::awaitable<void> talk_in_channels(Desk& desk, const Request& request, Visit& visit,
                                       EventFilter filter) {
  check_handshake(request);
  co_await visit.begin_talk(request, "ojs.v1");
  if (visit.talk() == nullptr) co_return;
  filter.state_changes = true;
  Conversation conversation(desk, visit, *visit.talk(), Channels(desk, std::move(filter)));
  co_await conversation.run();
}

}  // namespace ojs_shm::gateway
