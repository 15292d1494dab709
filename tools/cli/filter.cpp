// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/filter.hpp"

#include <algorithm>

#include "tools/cli/command.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {

bool FilterFlags::chosen() const {
  return !queue.empty() || !type.empty() || !state.empty() || !tenant.empty() ||
         !priority.empty() || !older_than.empty() || !ended_ago.empty() || !error_type.empty();
}

void add_filter(CLI::App& command, FilterFlags& flags) {
  command.add_option("--queue", flags.queue, "Only of this queue")->type_name("Q");
  command.add_option("--type", flags.type, "Only of this type")->type_name("T");
  command.add_option("--tenant", flags.tenant, "Only of this tenant")->type_name("ID");
  command.add_option("--priority", flags.priority, "Only of this priority, a number or a name")
      ->type_name("N|NAME");
  command
      .add_option("--older-than", flags.older_than,
                  "Only those that were created longer ago than this, such as 1h")
      ->type_name("TIME");
  command
      .add_option("--ended-ago", flags.ended_ago,
                  "Only those that were completed, cancelled or discarded longer ago than this")
      ->type_name("TIME");
  command
      .add_option("--error-type", flags.error_type,
                  "Only those whose last failure was of this type")
      ->type_name("T");
  command.add_option("--limit", flags.limit, "At most so many (0: all)")
      ->type_name("N")
      ->check(kNotNegative);
}

JobFilter filter_of(const FilterFlags& flags, const Observer& observer) {
  JobFilter filter;
  if (!flags.queue.empty()) shell::must(observer.queue(flags.queue));
  filter.queue = flags.queue;
  filter.type = flags.type;
  filter.limit = flags.limit;
  if (!flags.state.empty()) filter.state = parse_state(flags.state);
  if (!flags.tenant.empty()) filter.tenant = flags.tenant;
  if (!flags.priority.empty()) filter.priority = parse_priority(observer, flags.priority);
  filter.error_type = flags.error_type;
  const auto ago = [](const std::string& duration) {  // never 0, which would choose all
    const std::uint64_t now = shell::unix_now_ms();
    return now - std::min(now - 1, shell::must(shell::parse_duration_ms(duration)));
  };
  if (!flags.older_than.empty()) filter.created_before_ms = ago(flags.older_than);
  if (!flags.ended_ago.empty()) filter.ended_before_ms = ago(flags.ended_ago) + 1;
  return filter;
}

}  // namespace ojs_shm::cli
