// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ojs_shm/producer.hpp>
#include <ojs_shm/resilience.hpp>

#include "tools/cli/line_reader.hpp"
#include "tools/cli/on_full.hpp"
#include "tools/cli/progress_bar.hpp"
#include "tools/shell/unknown_members.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::cli {

/// Enqueues one envelope for each line of a descriptor, in batches, and prints the ids in the order
/// of the lines. A line that is refused is reported with its number and does not stop the rest. A
/// batch never waits for a line that has not come yet. On a terminal a progress bar is drawn on
/// stderr.
class EnvelopeStream {
 public:
  /// With `on_full` the lines go one by one and by its rules; what is left in its buffer at the end
  /// was refused. `strict`: a member that means nothing is a refusal; else they are counted, and
  /// named at the end.
  EnvelopeStream(Producer& producer, int fd, bool json, bool strict, const EnqueueOptions& patience,
                 const OnFull* on_full = nullptr);
  /// Returns an exit code: 0, or 1 when a line was refused. Throws shell::Refusal when nothing can
  /// go on.
  int run();

 private:
  struct Line {
    std::uint64_t number;
    Envelope envelope;
  };
  void take(const std::string& line);
  void flush();
  void enqueue_one(const Line& line);
  void empty_buffer();
  void print_id(std::string_view id) const;
  void refuse(std::uint64_t number, const Error& error);
  void draw(bool final);

  Producer& producer_;
  const OnFull* on_full_;
  std::optional<ResilientProducer> resilient_;
  std::map<std::string, std::uint64_t> buffered_;  ///< by id, the number of the line
  bool json_;
  shell::UnknownMembers unknown_;
  EnqueueOptions patience_;
  LineReader lines_;
  ProgressBar bar_;
  std::uint64_t accepted_ = 0, refused_ = 0;
  std::vector<Line> batch_;
};

}  // namespace ojs_shm::cli
