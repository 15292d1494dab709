// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/segment.hpp>

#include "worker_api/json/cron_text.hpp"

namespace ojs_shm::broker {

/// A priority as it was written, and where; what it means depends on the convention, which a flag
/// may choose.
struct DefaultPriority {
  std::string type, text, place;
};

/// Where the members of a file stand, by their names from the top: "queues.mail.aging" stands in
/// "broker.toml:7".
struct Places {
  std::map<std::string, std::string, std::less<>> by_name;

  bool knows(std::string_view name) const { return by_name.find(name) != by_name.end(); }
  /// Of a member that is not there, where what it would belong to stands.
  std::string of(std::string_view name) const;
};

/// [worker], in the words of qo.
struct WorkerAging {
  std::optional<bool> enabled;
  std::optional<std::uint32_t> rate;
  std::optional<std::int64_t> cap;
};

/// Everything that can be chosen for a broker, from its flags and its file.
struct Settings {
  SegmentName where;
  SegmentOptions options;
  bool convention_given = false, mode_given = false;  ///< else an existing segment keeps its own
  bool keep = false;                                  ///< also an empty segment
  bool remove = false;                                ///< whatever it holds
  /// else as the segment has it
  std::optional<bool> events, strict_envelopes, immutable_priorities;
  DeadLetterRetention dead;  ///< the same
  std::string log_level = "info";
  std::vector<std::pair<std::string, RateLimit>> limits;
  std::vector<std::pair<std::string, QueueSettings>> queues;
  std::vector<std::pair<std::string, PoolSettings>> pools;
  std::vector<std::shared_ptr<const CronText>> crons;
  std::vector<DefaultPriority> default_priorities;
  std::optional<AgingSettings> aging;  ///< of queues that have none of their own
  std::optional<WorkerAging> worker;   ///< of them too
  Places places;
};

/// One setting: `--max-queues 8` as a flag is `max_queues = 8` in the file.
struct Setting {
  std::string_view name;  ///< as in the file
  std::string_view value;
  std::string_view help;
  Status (*set)(Settings& settings, std::string_view text);
};

/// All but --name, --dir and --config, which have no place in this table.
std::span<const Setting> all_settings();
/// "max_queues" -> "--max-queues".
std::string flag_of(const Setting& setting);

}  // namespace ojs_shm::broker
