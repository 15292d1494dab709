// SPDX-License-Identifier: Apache-2.0
#include "bench/dialogues.hpp"

#include <charconv>
#include <stdexcept>
#include <string>

#include "bench/peers/peer.hpp"

namespace ojs_shm::bench {

namespace {

std::string args() {
  const Body body = blank_body();
  return {body.bytes, sizeof body};
}

[[noreturn]] void unexpected(std::string_view answer) {
  throw std::runtime_error("unexpected answer: " + std::string(answer.substr(0, 300)));
}

std::string post(std::string_view path, std::string_view body) {
  return "POST /ojs/v1/" + std::string(path) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::string job() { return R"({"type":"bench.job","queue":"default","args":)" + args() + "}"; }

/// The length of a whole answer; 0 before it is there.
std::size_t whole_http(std::string_view bytes) {
  constexpr std::string_view kLength = "Content-Length: ", kEnd = "\r\n\r\n";
  const std::size_t head = bytes.find(kEnd);
  if (head == std::string_view::npos) return 0;
  const std::size_t at = bytes.find(kLength);
  std::size_t length = 0;
  if (!bytes.starts_with("HTTP/1.1 2") || at > head) unexpected(bytes);
  std::from_chars(bytes.data() + at + kLength.size(), bytes.data() + head, length);
  const std::size_t all = head + kEnd.size() + length;
  return bytes.size() < all ? 0 : all;
}

/// The three steps by turns.
class Life : public Dialogue {
 public:
  explicit Life(Steps steps) : steps_(steps) {}
  std::string_view next() final {
    step_ = steps_ == Steps::kEnqueue ? 0 : (step_ + 1) % 3;
    return request_ = step_ == 0 ? in() : step_ == 1 ? out() : done();
  }

 protected:
  virtual std::string in() = 0;
  virtual std::string out() = 0;
  virtual std::string done() = 0;
  unsigned step() const { return step_; }

 private:
  Steps steps_;
  unsigned step_ = 2;
  std::string request_;
};

class Gateway final : public Life {
 public:
  using Life::Life;
  std::size_t answer(std::string_view bytes) override {
    const std::size_t all = whole_http(bytes);
    if (all == 0 || step() != 1) return all;
    constexpr std::string_view kId = R"("id":")";
    constexpr std::size_t kIdLength = 36;
    const std::size_t at = bytes.find(kId);
    if (at > all) unexpected(bytes);
    id_ = bytes.substr(at + kId.size(), kIdLength);
    return all;
  }

 private:
  std::string in() override { return enqueue_; }
  std::string out() override { return fetch_; }
  std::string done() override { return post("workers/ack", R"({"job_id":")" + id_ + R"("})"); }
  std::string enqueue_ = post("jobs", job());
  std::string fetch_ = post("workers/fetch", R"({"queues":["default"]})");
  std::string id_;
};

class GatewayBatches final : public Dialogue {
 public:
  explicit GatewayBatches(unsigned jobs) {
    std::string all = job();
    for (unsigned i = 1; i < jobs; ++i) all += "," + job();
    request_ = post("jobs/batch", R"({"jobs":[)" + all + "]}");
  }
  std::string_view next() override { return request_; }
  std::size_t answer(std::string_view bytes) override { return whole_http(bytes); }

 private:
  std::string request_;
};

class Redis final : public Life {
 public:
  using Life::Life;
  std::size_t answer(std::string_view bytes) override {
    // a number; of BZPOPMIN a list of three texts, each with its length
    std::size_t end = 0;
    for (unsigned lines = step() == 1 ? 7 : 1; lines > 0; --lines) {
      const std::size_t line = bytes.find("\r\n", end);
      if (line == std::string_view::npos) return 0;
      end = line + 2;
    }
    if (bytes.front() != (step() == 1 ? '*' : ':')) unexpected(bytes);
    return end;
  }

 private:
  static std::string command(std::initializer_list<std::string_view> words) {
    std::string text = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string_view word : words)
      text.append("$")
          .append(std::to_string(word.size()))
          .append("\r\n")
          .append(word)
          .append("\r\n");
    return text;
  }
  std::string in() override {
    const std::string number = std::to_string(sequence_++);
    return command({"ZADD", "jobs", number, number + args_});
  }
  std::string out() override { return command({"BZPOPMIN", "jobs", "0"}); }
  std::string done() override { return command({"HDEL", "working", "1"}); }
  std::string args_ = args();
  std::uint64_t sequence_ = reinterpret_cast<std::uintptr_t>(this) % 1'000'000 * 1'000'000;
};

class Beanstalkd final : public Life {
 public:
  using Life::Life;
  std::size_t answer(std::string_view bytes) override {
    constexpr std::string_view kOut = "RESERVED ";
    const std::size_t line = bytes.find("\r\n");
    if (line == std::string_view::npos) return 0;
    if (!bytes.starts_with(step() == 0 ? "INSERTED " : step() == 1 ? kOut : "DELETED"))
      unexpected(bytes);
    if (step() != 1) return line + 2;
    id_ = bytes.substr(kOut.size(), bytes.find(' ', kOut.size()) - kOut.size());
    const std::size_t all = line + 2 + args_.size() + 2;
    return bytes.size() < all ? 0 : all;
  }

 private:
  std::string in() override {
    return "put 2 0 60 " + std::to_string(args_.size()) + "\r\n" + args_ + "\r\n";
  }
  std::string out() override { return "reserve\r\n"; }
  std::string done() override { return "delete " + id_ + "\r\n"; }
  std::string args_ = args();
  std::string id_;
};

}  // namespace

std::unique_ptr<Dialogue> gateway_dialogue(Steps steps) { return std::make_unique<Gateway>(steps); }
std::unique_ptr<Dialogue> gateway_batches(unsigned jobs) {
  return std::make_unique<GatewayBatches>(jobs);
}
std::unique_ptr<Dialogue> redis_dialogue(Steps steps) { return std::make_unique<Redis>(steps); }
std::unique_ptr<Dialogue> beanstalkd_dialogue(Steps steps) {
  return std::make_unique<Beanstalkd>(steps);
}

}  // namespace ojs_shm::bench
