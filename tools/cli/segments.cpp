// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <spdlog/fmt/fmt.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <ojs_shm/admin.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"
#include "tools/shell/table.hpp"

namespace ojs_shm::cli {
namespace {

struct SegmentsOptions {};

std::string_view state_of(const SegmentFile& file) {
  if (!file.readable) return "unreadable";
  return file.alive ? "alive" : "stale";
}

/// Without this a misspelt directory looks like an empty one.
void check_directory(const std::string& dir) {
  DIR* stream = ::opendir(dir.c_str());
  if (stream == nullptr) {
    shell::refuse(errno == EACCES ? Code::kPermission : Code::kCannotAttach,
                  fmt::format("{}: {}", dir, std::strerror(errno)));
  }
  ::closedir(stream);
}

int segments(const Request& request, const SegmentsOptions&) {
  check_directory(request.where.dir);
  shell::Table table({"NAME", "SIZE>", "STATE!", "PATH", "PROBLEM"});
  const bool terminal = shell::stdout_is_terminal();
  for (const SegmentFile& file : list_segments(request.where.dir)) {
    if (request.json) {
      print_line(object([&](json::ObjectWriter& writer) {
        writer.text("name", file.name);
        count(writer, "size_bytes", file.size_bytes);
        writer.text("state", state_of(file));
        writer.text("path", file.path);
        if (!file.problem.empty()) writer.text("problem", file.problem);
      }));
    } else {
      table.row({file.name,
                 terminal ? shell::bytes_text(file.size_bytes) : std::to_string(file.size_bytes),
                 std::string(state_of(file)), file.path, file.problem});
    }
  }
  if (!table.empty()) table.print();
  return shell::kExitOk;
}

struct RemoveOptions {
  std::string name;
  bool force = false;
};

int remove(const Request& request, const RemoveOptions& options) {
  shell::must(remove_segment(SegmentName{options.name, request.where.dir},
                             options.force ? Removal::kForced : Removal::kUnused));
  told(request, "segment {} is removed", options.name);
  return shell::kExitOk;
}

}  // namespace

void add_segment_commands(CLI::App& app, Request& request) {
  add_command<SegmentsOptions>(app, request, "segments",
                               "List the segments of the directory: alive, stale or unreadable",
                               &segments);
  const auto [rm, options] = add_command<RemoveOptions>(
      app, request, "rm",
      "Remove a segment's files; refuses while it holds unfinished jobs, "
      "dead letters or crons (status 5), or a process lives",
      &remove);
  rm->add_option("NAME", options->name, "The segment's name")->required();
  rm->add_flag("--force", options->force,
               "Also with jobs and crons, which are lost, and under living processes; never a file "
               "that is not a segment");
}

}  // namespace ojs_shm::cli
