// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/bulk.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cctype>
#include <iostream>
#include <string>

#include "tools/cli/progress_bar.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {
namespace {

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

bool confirmed(std::uint64_t jobs, const BulkWords& words) {
  if (::isatty(STDIN_FILENO) != 1) return true;
  std::string question = fmt::format("{} {}? [y/N] ", words.verb, counted(jobs, words.noun));
  question[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(question[0])));
  shell::say(question);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int run_bulk(const Request& request, Admin& admin, BulkAction action, const JobFilter& filter,
             const BulkWords& words, bool yes) {
  std::optional<ProgressBar> bar;
  bool refused = false, drawn = false;
  const auto progress = [&](const BulkReport& report) {
    if (!bar) {
      refused = report.matched != 0 && !yes && !confirmed(report.matched, words);
      bar.emplace(report.matched);
    }
    const std::uint64_t looked_at = report.done + report.skipped;
    if (refused || looked_at == 0 || looked_at >= report.matched) return !refused;
    bar->draw(looked_at, fmt::format("{} {}", report.done, words.participle), false);
    drawn = true;
    return !refused;
  };
  const BulkReport report = shell::must(admin.bulk(action, filter, progress));
  if (drawn) bar->clear();
  if (request.json) {
    print_line(object([&](json::ObjectWriter& writer) {
      count(writer, "matched", report.matched);
      count(writer, "done", report.done);
      count(writer, "skipped", report.skipped);
    }));
  } else {
    print_line(fmt::format(
        "{} {}{}", counted(report.done, words.noun), words.participle,
        report.skipped == 0 ? "" : fmt::format(", {} changed meanwhile", report.skipped)));
  }
  return refused ? shell::kExitFailed : shell::kExitOk;
}

}  // namespace ojs_shm::cli
