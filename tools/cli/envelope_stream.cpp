// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/envelope_stream.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
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
  return code == Code::kClosed || code == Code::kCannotAttach || code == Code::kInternal ||
         code == Code::kOtherFormat;
}

}  // namespace

EnvelopeStream::EnvelopeStream(Producer& producer, int fd, bool json, bool strict,
                               const EnqueueOptions& patience, const OnFull* on_full)
    : producer_(producer),
      on_full_(on_full),
      json_(json),
      unknown_(strict),
      patience_(patience),
      lines_(fd),
      bar_(lines_.size()) {
  if (on_full != nullptr)
    resilient_.emplace(shell::must(Producer::attach(producer.segment())), on_full->options);
}

int EnvelopeStream::run() {
  for (std::string line; lines_.next(line);) {
    take(line);
    if (batch_.size() >= kBatch || !lines_.has_more_now()) flush();
  }
  flush();
  if (resilient_) empty_buffer();
  draw(true);
  unknown_.warn();
  return refused_ == 0 ? shell::kExitOk : shell::kExitFailed;
}

void EnvelopeStream::take(const std::string& line) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  auto envelope = parse_envelope(line, shell::unix_now_ms(), PriorityNames::kTaken);
  if (!envelope) return refuse(lines_.count(), envelope.error());
  const Status supported = check_supported(*envelope);
  if (!supported) return refuse(lines_.count(), supported.error());
  const Observer observer = shell::must(Observer::attach(producer_.segment()));
  if (!envelope->vast_priority.empty())
    return refuse(lines_.count(), out_of_range(observer, envelope->vast_priority));
  if (const Status named = settle_priority(*envelope, observer); !named)
    return refuse(lines_.count(), named.error());
  if (const Status known = unknown_.judge(*envelope); !known)
    return refuse(lines_.count(), known.error());
  batch_.push_back({lines_.count(), std::move(envelope).value()});
}

/// A batch is all or none; when it is refused, its lines go one by one, to find those that are at
/// fault. A caller that has waited for room in vain does not wait again for each.
void EnvelopeStream::flush() {
  std::vector<JobSpec> specs;
  if (resilient_) {
    for (const Line& line : batch_) enqueue_one(line);
    batch_.clear();
  }
  for (const Line& line : batch_) specs.push_back(line.envelope.spec());
  const auto start = std::chrono::steady_clock::now();
  const auto whole = specs.empty() ? Result<std::vector<JobIdText>>(std::vector<JobIdText>())
                                   : producer_.enqueue_batch(specs, patience_);
  if (whole) {
    for (const JobIdText& id : whole.value()) print_id(id.view());
    accepted_ += specs.size();
  } else if (ends_everything(whole.code())) {
    throw shell::Refusal{whole.error()};
  } else {
    const bool waited = std::chrono::steady_clock::now() - start >= patience_.block_timeout;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto one = producer_.enqueue(specs[i], waited ? EnqueueOptions{} : patience_);
      if (one) {
        print_id(one.value().view());
        ++accepted_;
      } else {
        refuse(batch_[i].number, one.error());
      }
    }
  }
  batch_.clear();
  if (const Status flushed = shell::flush_output(); !flushed) {
    bar_.clear();
    shell::refuse(flushed.code(), fmt::format("{} jobs are stored, those of the lines up to {}, "
                                              "and no line after it was taken; but {}; "
                                              "`ojs-shm list` shows their ids",
                                              accepted_, lines_.count(), flushed.error().message));
  }
  draw(false);
}

void EnvelopeStream::enqueue_one(const Line& line) {
  const auto receipt = resilient_->enqueue(line.envelope.spec());
  if (!receipt) {
    if (ends_everything(receipt.code())) throw shell::Refusal{receipt.error()};
    return refuse(line.number, receipt.error());
  }
  print_id(receipt->id.view());
  ++accepted_;
  if (receipt->buffered) buffered_[receipt->id.str()] = line.number;
}

void EnvelopeStream::empty_buffer() {
  const auto& buffer = on_full_->options.buffer;
  if (buffer == nullptr) return;
  (void)buffer->flush(on_full_->flush);
  for (const UnsentJob& unsent : buffer->close()) {
    --accepted_;
    refuse(buffered_[unsent.job.id], unsent.error);
  }
}

void EnvelopeStream::print_id(std::string_view id) const {
  if (shell::stdout_is_terminal()) bar_.clear();
  if (json_) {
    print_line(object([&](json::ObjectWriter& writer) { writer.text("id", id); }));
  } else {
    print_line(id);
  }
}

void EnvelopeStream::refuse(std::uint64_t number, const Error& error) {
  ++refused_;
  bar_.clear();
  Error placed = error;
  placed.message = fmt::format("line {}: {}", number, error.message);
  if (json_) {
    std::fputs((shell::error_as_json(placed, number) + "\n").c_str(), stderr);
  } else {
    shell::report(placed, false);
  }
}

void EnvelopeStream::draw(bool final) {
  bar_.draw(lines_.bytes(), fmt::format("{} accepted, {} refused", accepted_, refused_), final);
}

}  // namespace ojs_shm::cli
