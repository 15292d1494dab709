// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/envelope_stream.hpp"

#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <ojs_shm/observer.hpp>

#include "tools/cli/submission.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"

namespace ojs_shm::cli {
namespace {

constexpr std::size_t kBatch = 256;

/// After these no other line can fare better.
bool ends_everything(Code code) {
  return code == Code::kClosed || code == Code::kCannotAttach || code == Code::kInternal || code == Code::kOtherFormat;
}

}  // namespace

EnvelopeStream::EnvelopeStream(Producer& producer, int fd, bool json)
    : producer_(producer), fd_(fd), json_(json), bar_(::isatty(STDERR_FILENO) == 1) {
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) total_bytes_ = static_cast<std::uint64_t>(info.st_size);
}

int EnvelopeStream::run() {
  for (std::string line; next_line(line);) {
    take(line);
    if (batch_.size() >= kBatch || !has_more_now()) flush();
  }
  flush();
  draw(true);
  return refused_ == 0 ? shell::kExitOk : shell::kExitFailed;
}

bool EnvelopeStream::next_line(std::string& line) {
  std::size_t searched = begin_;
  for (;;) {
    const auto newline = buffer_.find('\n', searched);
    if (newline != std::string::npos || (ended_ && begin_ < buffer_.size())) {
      const std::size_t end = newline != std::string::npos ? newline : buffer_.size();
      line.assign(buffer_, begin_, end - begin_);
      begin_ = newline != std::string::npos ? end + 1 : end;
      ++lines_;
      bytes_ += line.size() + 1;
      return true;
    }
    if (ended_) return false;
    searched = buffer_.size() - begin_;
    buffer_.erase(0, std::exchange(begin_, 0));
    std::array<char, 65536> block;
    const ssize_t n = ::read(fd_, block.data(), block.size());
    if (n > 0) buffer_.append(block.data(), static_cast<std::size_t>(n));
    if (n == 0) ended_ = true;
    if (n < 0 && errno != EINTR) shell::refuse(Code::kInternal, fmt::format("reading: {}", std::strerror(errno)));
  }
}

bool EnvelopeStream::has_more_now() const {
  if (ended_ || buffer_.find('\n', begin_) != std::string::npos) return true;
  pollfd input{fd_, POLLIN, 0};
  return ::poll(&input, 1, 0) == 1;
}

void EnvelopeStream::take(const std::string& line) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  auto envelope = parse_envelope(line, shell::unix_now_ms());
  if (!envelope) return refuse(lines_, envelope.error());
  const Status supported = check_supported(*envelope);
  if (!supported) return refuse(lines_, supported.error());
  if (!envelope->vast_priority.empty()) {
    return refuse(lines_, out_of_range(shell::must(Observer::attach(producer_.segment())), envelope->vast_priority));
  }
  batch_.push_back({lines_, std::move(envelope).value()});
}

/// A batch is all or none; when it is refused, its lines go one by one, to find those that are at fault.
void EnvelopeStream::flush() {
  std::vector<JobSpec> specs;
  for (const Line& line : batch_) specs.push_back(line.envelope.spec());
  const auto whole =
      specs.empty() ? Result<std::vector<JobIdText>>(std::vector<JobIdText>()) : producer_.enqueue_batch(specs);
  if (whole) {
    for (const JobIdText& id : whole.value()) print_id(id.view());
    accepted_ += specs.size();
  } else if (ends_everything(whole.code())) {
    throw shell::Refusal{whole.error()};
  } else {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto one = producer_.enqueue(specs[i]);
      if (one) {
        print_id(one.value().view());
        ++accepted_;
      } else {
        refuse(batch_[i].number, one.error());
      }
    }
  }
  batch_.clear();
  std::fflush(stdout);
  draw(false);
}

void EnvelopeStream::print_id(std::string_view id) const {
  if (bar_ && shell::stdout_is_terminal()) fmt::print("\r\x1b[K");
  if (json_) {
    print_line(object([&](json::ObjectWriter& writer) { writer.text("id", id); }));
  } else {
    print_line(id);
  }
}

void EnvelopeStream::refuse(std::uint64_t number, const Error& error) {
  ++refused_;
  if (bar_) shell::say("\r\x1b[K");
  Error placed = error;
  placed.message = fmt::format("line {}: {}", number, error.message);
  if (json_) {
    std::fputs((shell::error_as_json(placed, number) + "\n").c_str(), stderr);
  } else {
    shell::report(placed, false);
  }
}

void EnvelopeStream::draw(bool final) {
  if (!bar_) return;
  constexpr std::uint64_t kWidth = 40;
  const std::uint64_t permille = total_bytes_ == 0 ? 0 : std::min<std::uint64_t>(1000, bytes_ * 1000 / total_bytes_);
  if (!final && permille == drawn_permille_ && total_bytes_ != 0) return;
  drawn_permille_ = permille;
  std::string bar;
  if (total_bytes_ != 0) {
    const std::uint64_t filled = permille * kWidth / 1000;
    bar = fmt::format("[{}{}] {:3d} %  ", std::string(filled, '#'), std::string(kWidth - filled, '.'), permille / 10);
  }
  shell::say("\r\x1b[K{}{} accepted, {} refused{}", bar, accepted_, refused_, final ? "\n" : "");
}

}  // namespace ojs_shm::cli
