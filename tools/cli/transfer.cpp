// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <numeric>
#include <string>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/transfer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/line_reader.hpp"
#include "tools/cli/progress_bar.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct ExportOptions {};

std::uint64_t jobs_in(const Observer& observer) {
  std::uint64_t jobs = 0;
  for (const QueueInfo& queue : observer.queues())
    jobs = std::accumulate(std::begin(queue.by_state), std::end(queue.by_state), jobs);
  return jobs;
}

int export_all(const Request& request, const ExportOptions&) {
  const Segment segment = must(Segment::observe(request.where));
  ProgressBar bar(jobs_in(must(Observer::attach(segment))));
  std::uint64_t lines = 0;
  must(export_segment(segment, [&](std::string_view line) -> Status {
    print_line(line);
    bar.draw(++lines, fmt::format("{} lines", lines), false);
    return std::ferror(stdout) == 0 ? Status() : shell::flush_output();
  }));
  bar.draw(lines, fmt::format("{} lines", lines), true);
  return shell::kExitOk;
}

struct ImportOptions {
  std::string file;
};

class ImportRun {
 public:
  ImportRun(Import& import, int fd, bool json)
      : import_(import), lines_(fd), bar_(lines_.size()), json_(json) {}

  int run() {
    try {
      for (std::string line; lines_.next(line);) {
        judge(import_.take(line));
        draw(false);
      }
      while (!judge(import_.finish())) {}
    } catch (const shell::Refusal& refusal) {  // the counts are what is there all the same
      if (refusal.error.code == Code::kOtherFormat) throw;
      (void)import_.finish();
      draw(true);
      print_report();
      throw;
    }
    draw(true);
    print_report();
    const std::uint64_t displaced = import_.report().displaced;
    if (displaced != 0)
      shell::say(
          "{} finished jobs gave their room to others; --slots of the broker sets how many jobs "
          "fit\n",
          displaced);
    return refused_ == 0 ? shell::kExitOk : shell::kExitFailed;
  }

 private:
  bool judge(const Status& done) {
    if (done) return true;
    if (!refuses_one_line(done.code())) throw shell::Refusal{done.error()};
    ++refused_;
    bar_.clear();
    shell::report(done.error(), json_);
    return false;
  }

  void draw(bool final) {
    const ImportReport& report = import_.report();
    bar_.draw(lines_.bytes(),
              fmt::format("{} jobs, {} there already, {} refused", report.jobs, report.existing,
                          refused_),
              final);
  }

  void print_report() const {
    const ImportReport& report = import_.report();
    const std::string object = cli::object([&](json::ObjectWriter& writer) {
      count(writer, "jobs", report.jobs);
      count(writer, "existing", report.existing);
      count(writer, "refused", refused_);
      count(writer, "queues", report.queues);
      count(writer, "default_priorities", report.default_priorities);
      count(writer, "defaulted", report.defaulted);
      count(writer, "clamped", report.clamped);
      count(writer, "pools", report.pools);
      count(writer, "limits", report.limits);
      count(writer, "crons", report.crons);
      count(writer, "displaced", report.displaced);
    });
    if (json_)
      print_line(object);
    else
      print_members(object);
  }

  Import& import_;
  LineReader lines_;
  ProgressBar bar_;
  bool json_;
  std::uint64_t refused_ = 0;
};

/// A descriptor that ends with it.
struct Input {
  explicit Input(const std::string& path)
      : fd(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd < 0)
      shell::refuse(errno == EACCES ? Code::kPermission : Code::kInvalid,
                    fmt::format("{}: {}", path, std::strerror(errno)));
  }
  Input(const Input&) = delete;
  ~Input() { ::close(fd); }
  int fd;
};

int import_all(const Request& request, const ImportOptions& options) {
  const Input input(options.file);
  Import import = must(Import::attach(must(Segment::attach(request.where))));
  return ImportRun(import, input.fd, request.json).run();
}

}  // namespace

void add_transfer_commands(CLI::App& app, Request& request) {
  CLI::App* out =
      add_command<ExportOptions>(
          app, request, "export",
          "Print a segment's queues, pools, limits, crons and jobs, for import", &export_all)
          .first;
  out->add_option("NAME", request.where.name, "The segment (--name)");
  set_footer(
      *out,
      "\nLines of JSON; every later version can read them. It only looks, also where the segment "
      "has no broker.\n"
      "Stop producers and workers first, else each job is exported as it was at some instant.\n");
  const auto [in, in_options] = add_command<ImportOptions>(
      app, request, "import",
      "Put an export into a segment: import FILE --name NEW; prints what it did", &import_all);
  in->add_option("FILE", in_options->file, "An export; - is standard input")->required();
  set_footer(*in,
             "\nThe segment is one that a broker has made, of any convention: a priority keeps its "
             "rank. A job without a\n"
             "priority gets the default and stands behind the others. An active job becomes "
             "available, first of its level.\n"
             "An id that exists is left as it is, so an import that was cut off is simply run "
             "again. A line that is refused\n"
             "is reported with its number, the others go on, and the status is 1.\n");
}

}  // namespace ojs_shm::cli
