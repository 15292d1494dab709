// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include <ojs_shm/ojs_shm_transfer.h>
#include <ojs_shm/transfer.hpp>

#include "worker_api/c_api/c_api_structs.hpp"

namespace {

using namespace ojs_shm::c_api;
using ojs_shm::Code;
using ojs_shm::Error;
using ojs_shm::Status;

Error system_error(const char* what) {
  return Error{Code::kInternal, std::string(what) + ": " + std::strerror(errno)}.about("fd");
}

/// Lines that go to a descriptor, many at a time.
class LineWriter {
 public:
  explicit LineWriter(int fd) : fd_(fd) {}
  Status take(std::string_view line) {
    waiting_.append(line) += '\n';
    ++lines;
    return waiting_.size() < kEnough ? Status() : flush();
  }
  Status flush() {
    for (std::size_t done = 0; done < waiting_.size();) {
      const ssize_t written = ::write(fd_, waiting_.data() + done, waiting_.size() - done);
      if (written < 0 && errno != EINTR) return system_error("the export cannot be written");
      done += written > 0 ? static_cast<std::size_t>(written) : 0;
    }
    waiting_.clear();
    return {};
  }
  std::int64_t lines = 0;

 private:
  static constexpr std::size_t kEnough = 65'536;
  int fd_;
  std::string waiting_;
};

/// Reads lines up to the end of a descriptor, which stays open.
class LineSource {
 public:
  explicit LineSource(int fd) : file_(::fdopen(::fcntl(fd, F_DUPFD_CLOEXEC, 0), "r")) {}
  LineSource(const LineSource&) = delete;
  ~LineSource() {
    if (file_ != nullptr) std::fclose(file_);
    std::free(line_);
  }
  std::optional<std::string_view> next() {
    const ssize_t length = file_ == nullptr ? -1 : ::getline(&line_, &room_, file_);
    if (length < 0) return std::nullopt;
    return std::string_view(line_,
                            static_cast<std::size_t>(length - (line_[length - 1] == '\n' ? 1 : 0)));
  }
  bool failed() const { return file_ == nullptr || std::ferror(file_) != 0; }

 private:
  std::FILE* file_;
  char* line_ = nullptr;
  std::size_t room_ = 0;
};

ojs_shm_import_report report_of(const ojs_shm::ImportReport& done, std::uint64_t refused) {
  ojs_shm_import_report report{};
  report.jobs = done.jobs;
  report.existing = done.existing;
  report.refused = refused;
  report.queues = done.queues;
  report.pools = done.pools;
  report.limits = done.limits;
  report.default_priorities = done.default_priorities;
  report.defaulted = done.defaulted;
  report.clamped = done.clamped;
  report.displaced = done.displaced;
  report.crons = done.crons;
  return report;
}

/// Takes all lines; the first error of a line is kept, as kInvalid, any other ends it.
Status import_lines(ojs_shm::Import& import, LineSource& lines, std::uint64_t& refused) {
  Status first;
  const auto goes_on = [&](const Status& done) {
    if (done) return true;
    if (!ojs_shm::refuses_one_line(done.code())) return false;
    if (refused++ == 0) {
      ojs_shm::Error error = done.error();
      error.code = Code::kInvalid;
      first = std::move(error);
    }
    return true;
  };
  while (const auto line = lines.next())
    if (const Status done = import.take(*line); !goes_on(done)) return done;
  if (lines.failed()) return system_error("the export cannot be read");
  for (Status done = import.finish(); !done; done = import.finish())
    if (!goes_on(done)) return done;
  return first;
}

}  // namespace

extern "C" {

int64_t ojs_shm_export(const ojs_shm_segment* segment, int fd) {
  return entry([&](Record& record) -> int64_t {
    LineWriter writer(fd);
    Status done = ojs_shm::export_segment(opened(segment).object,
                                          [&](std::string_view line) { return writer.take(line); });
    if (done) done = writer.flush();
    return done ? writer.lines : record.fail(done.error());
  });
}

int ojs_shm_import(const ojs_shm_segment* segment, int fd, ojs_shm_import_report* report) {
  return entry([&](Record& record) -> int {
    if (report != nullptr) write_struct(report, ojs_shm_import_report{}, "report");
    auto import = ojs_shm::Import::attach(opened(segment).object);
    if (!import) return record.fail(import.error());
    LineSource lines(fd);
    std::uint64_t refused = 0;
    const Status done = import_lines(import.value(), lines, refused);
    if (report != nullptr) write_struct(report, report_of(import->report(), refused), "report");
    return record.done(done);
  });
}

}  // extern "C"
