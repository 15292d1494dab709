// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/work_config.hpp"

#include <spdlog/fmt/fmt.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "tools/shell/refusal.hpp"
#include "tools/shell/text_file.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/roles/settings_check.hpp"

namespace ojs_shm::cli {
namespace {

using shell::invalid;

/// What JSON and TOML have in common, and the line it stands in.
struct Value {
  std::size_t line = 0;
  std::optional<std::string> text;
  std::optional<std::int64_t> number;
  std::optional<std::vector<Value>> elements;
  std::optional<std::vector<std::pair<std::string, Value>>> members;
};

Value value_of(std::string_view json, std::string_view file) {
  Value value;
  value.line = static_cast<std::size_t>(std::count(file.data(), json.data(), '\n')) + 1;
  value.text = json::string_of(json);
  if (json::kind_of(json) == json::Kind::kNumber) value.number = json::integer_of(json);
  if (json::kind_of(json) == json::Kind::kArray) {
    value.elements.emplace();
    for (const std::string_view element : json::elements_of(json))
      value.elements->push_back(value_of(element, file));
  }
  if (json::kind_of(json) == json::Kind::kObject) {
    value.members.emplace();
    for (const json::Member& member : json::members_of(json))
      value.members->emplace_back(member.name, value_of(member.value, file));
  }
  return value;
}

Value value_of(const toml::node& node) {
  Value value;
  value.line = node.source().begin.line;
  value.text = node.value_exact<std::string>();
  value.number = node.value_exact<std::int64_t>();
  if (const toml::array* array = node.as_array()) {
    value.elements.emplace();
    for (const toml::node& element : *array) value.elements->push_back(value_of(element));
  }
  if (const toml::table* table = node.as_table()) {
    value.members.emplace();
    for (const auto& [key, member] : *table)
      value.members->emplace_back(key.str(), value_of(member));
  }
  return value;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Result<WorkConfig> read(const Value& file) const {
    if (!file.members) return complain(file, "it must be an object");
    WorkConfig config;
    for (const auto& [key, value] : *file.members) {
      Status taken;
      if (key == "strategy") {
        config.strategy = value.text;
        if (!config.strategy) taken = complain(value, "`strategy` must be a string");
      } else if (key == "queues") {
        taken = take_queues(value, config);
      } else {
        taken = complain(value, fmt::format("unknown key `{}`; there are queues, strategy", key));
      }
      if (!taken) return taken.error();
    }
    return config;
  }

  Error complain(std::size_t line, std::string_view text) const {
    return invalid(fmt::format("{}:{}: {}", path_, line, text));
  }
  Error complain(const Value& where, std::string_view text) const {
    return complain(where.line, text);
  }

 private:
  Status take_queues(const Value& value, WorkConfig& config) const {
    constexpr std::string_view kExpected =
        "`queues` must be an array of names or of {name, weight}";
    if (!value.elements) return complain(value, kExpected);
    for (const Value& element : *value.elements) {
      QueueShare& share = config.queues.emplace_back();
      if (element.text) {
        share.name = *element.text;
      } else if (!element.members) {
        return complain(element, kExpected);
      } else if (Status taken = take_share(element, share); !taken) {
        return taken;
      }
    }
    return {};
  }

  Status take_share(const Value& object, QueueShare& share) const {
    for (const auto& [key, value] : *object.members) {
      if (key == "name") {
        if (!value.text) return complain(value, "`name` must be a string");
        share.name = *value.text;
      } else if (key == "weight") {
        if (!value.number) return complain(value, "`weight` must be an integer");
        share.weight = value.number;
      } else {
        return complain(value,
                        fmt::format("unknown key `{}` of a queue; there are name, weight", key));
      }
    }
    return share.name.empty() ? complain(object, "a queue has no `name`") : Status();
  }

  const std::string& path_;
};

}  // namespace

Result<WorkConfig> read_work_config(const std::string& path) {
  const Result<std::string> text = shell::read_text_file(path);
  if (!text) return text.error();
  const Reader reader(path);
  if (json::trim(*text).starts_with('{')) {  // which no TOML does
    if (Status valid = json::check(*text); !valid)
      return invalid(path + ": " + valid.error().message);
    return reader.read(value_of(json::trim(*text), *text));
  }
  try {
    return reader.read(value_of(toml::parse(*text, path)));
  } catch (const toml::parse_error& problem) {
    return reader.complain(problem.source().begin.line, problem.description());
  }
}

Result<QueueShare> parse_share(const std::string& text) {
  const std::size_t colon = text.find(':');
  QueueShare share{text.substr(0, colon), {}};
  if (colon == std::string::npos) return share;
  std::int64_t weight = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data() + colon + 1, end, weight);
  if (problem != std::errc{} || rest != end)
    return invalid(fmt::format("\"{}\" is no QUEUE:WEIGHT", text));
  share.weight = weight;
  return share;
}

Status apply(const WorkConfig& config, WorkerOptions& options) {
  const std::string strategy = config.strategy.value_or("strict");
  if (strategy != "strict" && strategy != "weighted")
    return invalid(fmt::format("strategy \"{}\" is none of strict, weighted", strategy));
  options.strategy = strategy == "weighted" ? QueueStrategy::kWeighted : QueueStrategy::kStrict;
  if (config.queues.empty()) return {};
  options.queues.clear();
  const bool weights =
      std::any_of(config.queues.begin(), config.queues.end(),
                  [](const QueueShare& share) { return share.weight.has_value(); });
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  for (const QueueShare& share : config.queues) {
    options.queues.push_back(share.name);
    const std::int64_t weight = std::clamp<std::int64_t>(share.weight.value_or(1), 0, kMost);
    if (weights) options.weights.push_back(static_cast<std::uint32_t>(weight));
  }
  return internal::check_strategy(options);
}

}  // namespace ojs_shm::cli
