// SPDX-License-Identifier: Apache-2.0
#include "tools/broker/config_file.hpp"

#include <spdlog/fmt/fmt.h>
#include <toml++/toml.h>

#include <chrono>
#include <optional>
#include <sstream>
#include <string_view>

#include "tools/shell/quantity.hpp"
#include "tools/shell/text_file.hpp"
#include "worker_api/cron/schedule.hpp"
#include "worker_api/json/cron_text.hpp"
#include "worker_api/roles/limit_rule.hpp"
#include "worker_api/roles/settings_check.hpp"
#include "worker_api/roles/worker_pools.hpp"

namespace ojs_shm::broker {
namespace {

/// One file being read; every complaint carries its path and the line.
class Reader {
 public:
  Reader(const std::string& path, Settings& settings) : path_(path), settings_(settings) {}

  Status read(const toml::table& file) {
    for (const auto& [key, node] : file) {
      note(std::string(key.str()), node);
      const Status read = read_top(key, node);
      if (!read) return read;
    }
    return {};
  }

  Error complain(const toml::source_region& where, std::string_view text) const {
    Error error;
    error.code = Code::kInvalid;
    error.message = fmt::format("{}:{}: {}", path_, where.begin.line, text);
    return error;
  }

 private:
  /// Where it stands, and everything in it, for what is refused only when the convention is known.
  void note(const std::string& name, const toml::node& node) {
    settings_.places.by_name.emplace(name, fmt::format("{}:{}", path_, node.source().begin.line));
    if (const toml::table* table = node.as_table())
      for (const auto& [key, inner] : *table) note(fmt::format("{}.{}", name, key.str()), inner);
  }

  Status read_top(const toml::key& key, const toml::node& node) {
    if (key.str() == "name") return take_text(key, node, settings_.where.name);
    if (key.str() == "dir") return take_text(key, node, settings_.where.dir);
    if (key.str() == "queues") return each_in(key, node, &Reader::read_queue);
    if (key.str() == "pools") return each_in(key, node, &Reader::read_pool);
    if (key.str() == "crons") return each_in(key, node, &Reader::read_cron);
    if (key.str() == "aging") return read_default_aging(key, node);
    if (key.str() == "limits") return each_in(key, node, &Reader::read_limit);
    if (key.str() == "worker") return each_in(key, node, &Reader::read_worker);
    if (key.str() == "default_priorities")
      return each_in(key, node, &Reader::read_default_priority);
    for (const Setting& setting : all_settings()) {
      if (setting.name != key.str()) continue;
      if (setting.name == "mode" && is_decimal(node))
        return complain(node.source(), "`mode` is octal: write \"0660\" or 0o660");
      const auto text = scalar_text(node, setting.name == "mode");
      if (!text) return complain(node.source(), fmt::format("`{}` must be one value", key.str()));
      const Status set = setting.set(settings_, *text);
      return set ? Status()
                 : complain(node.source(), fmt::format("`{}`: {}", key.str(), set.error().message));
    }
    std::string known =
        "name, dir, queues, pools, crons, default_priorities, aging, limits, worker";
    for (const Setting& setting : all_settings()) known += fmt::format(", {}", setting.name);
    return complain(key.source(), fmt::format("unknown key `{}`; there are {}", key.str(), known));
  }

  /// [queues.NAME] with paused and backpressure, as in the Admin API.
  Status read_queue(const toml::key& key, const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      return complain(node.source(), fmt::format("queue `{}` must be a table", key.str()));
    QueueSettings settings;
    for (const auto& [member, value] : *table) {
      Status read;
      if (member.str() == "paused") {
        settings.paused = value.value_exact<bool>();
        if (!settings.paused) read = complain(value.source(), "`paused` must be true or false");
      } else if (member.str() == "backpressure") {
        read = read_backpressure(value, settings);
      } else if (member.str() == "aging" || member.str() == "level_weights" ||
                 member.str() == "shards" || member.str() == "tenant_fairness" ||
                 member.str() == "retention") {
        read = read_order(member, value, settings);
      } else {
        read = complain(member.source(),
                        fmt::format("unknown key `{}` of a queue; there are paused, backpressure, "
                                    "aging, level_weights, shards, tenant_fairness, retention",
                                    member.str()));
      }
      if (!read) return read;
    }
    if (const Status usable = internal::check_queue(key.str(), settings); !usable)
      return complain(key.source(),
                      fmt::format("queue `{}`: {}", key.str(), usable.error().message));
    settings_.queues.emplace_back(key.str(), settings);
    return {};
  }

  static std::string json_of(const toml::node& node) {
    std::ostringstream json;
    node.visit([&json](const auto& value) {
      if constexpr (toml::is_table<decltype(value)>)
        json << toml::json_formatter(value);
      else if constexpr (toml::is_value<decltype(value)>)
        json << toml::json_formatter(toml::array{value});
    });
    std::string text = json.str();
    if (!node.is_table() && text.size() > 2)
      text = text.substr(text.find('[') + 1, text.rfind(']') - text.find('[') - 1);
    return text.empty() ? "null" : text;
  }

  /// Names the line of the member that the error is about.
  Error complain_inside(const toml::node& node, std::string_view subject,
                        std::string_view message) const {
    const toml::node* at = &node;
    while (!subject.empty()) {
      const std::size_t dot = subject.find('.');
      const toml::table* table = at->as_table();
      if (const toml::node* member =
              table == nullptr ? nullptr : table->get(subject.substr(0, dot)))
        at = member;
      subject = dot == std::string_view::npos ? std::string_view() : subject.substr(dot + 1);
    }
    return complain(at->source(), message);
  }

  /// [pools.NAME], as in the Admin API.
  Status read_pool(const toml::key& key, const toml::node& node) {
    if (node.as_table() == nullptr)
      return complain(node.source(), fmt::format("pool `{}` must be a table", key.str()));
    const auto read = parse_pool_settings(json_of(node));
    if (!read) return complain_inside(node, read.error().subject, read.error().message);
    if (const Status usable = internal::check_pool(key.str(), read.value()); !usable)
      return complain_inside(node, usable.error().subject,
                             fmt::format("pool `{}`: {}", key.str(), usable.error().message));
    settings_.pools.emplace_back(key.str(), read.value());
    return {};
  }

  /// [crons.NAME], as over HTTP.
  Status read_cron(const toml::key& key, const toml::node& node) {
    if (node.as_table() == nullptr)
      return complain(node.source(), fmt::format("cron `{}` must be a table", key.str()));
    auto read = parse_cron(json_of(node), unix_ms(), key.str());
    if (!read)
      return complain_inside(node, read.error().subject,
                             fmt::format("cron `{}`: {}", key.str(), read.error().message));
    if (const auto& unknown = (*read)->unknown; !unknown.empty())
      return complain_inside(
          node, unknown.front(),
          fmt::format("unknown key `{}` of cron `{}`; there are expression, timezone, "
                      "overlap_policy, enabled, description, job_template, and options of jobs",
                      unknown.front(), key.str()));
    if (const auto known = CronSchedule::read((*read)->spec.expression, (*read)->spec.timezone);
        !known)
      return complain_inside(node, known.error().subject,
                             fmt::format("cron `{}`: {}", key.str(), known.error().message));
    settings_.crons.push_back(std::move(*read));
    return {};
  }

  static std::uint64_t unix_ms() {
    using namespace std::chrono;
    const auto now = system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(duration_cast<milliseconds>(now).count());
  }

  /// What the Admin API reads as JSON has the same form here. A complaint names the line of the
  /// member it is about.
  Status read_order(const toml::key& key, const toml::node& node, QueueSettings& settings) {
    const auto read = parse_queue_settings(fmt::format(R"({{"{}":{}}})", key.str(), json_of(node)));
    if (!read) return complain_inside(node, read.error().subject, read.error().message);
    if (read->aging) settings.aging = read->aging;
    if (read->level_weights) settings.level_weights = read->level_weights;
    if (read->shards) settings.shards = read->shards;
    if (read->tenant_fairness) settings.tenant_fairness = read->tenant_fairness;
    if (key.str() == "retention") settings.retention = read->retention;
    return {};
  }

  /// A member whose value is a number or a text, as the Admin API reads it within `object`.
  Status read_as_json(std::string_view object, const toml::key& member, const toml::node& value,
                      QueueSettings& settings) {
    std::ostringstream json;
    value.visit([&json](const auto& scalar) {
      if constexpr (toml::is_value<decltype(scalar)>)
        json << toml::json_formatter(toml::array{scalar});
    });
    std::string text = json.str();
    text = text.size() > 2 ? text.substr(text.find('[') + 1, text.rfind(']') - text.find('[') - 1)
                           : "null";
    const auto read =
        parse_queue_settings(fmt::format(R"({{"{}":{{"{}":{}}}}})", object, member.str(), text));
    if (!read) return complain(value.source(), read.error().message);
    if (read->strategy) settings.strategy = read->strategy;
    if (read->warning_threshold) settings.warning_threshold = read->warning_threshold;
    if (read->clear_threshold) settings.clear_threshold = read->clear_threshold;
    if (read->drop) settings.drop = read->drop;
    return {};
  }

  Status read_default_aging(const toml::key& key, const toml::node& node) {
    QueueSettings settings;
    if (const Status read = read_order(key, node, settings); !read) return read;
    settings_.aging = settings.aging;
    return {};
  }

  /// [limits."KEY"], as `rate_limit` of a job without the key.
  Status read_limit(const toml::key& key, const toml::node& node) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      return complain(node.source(), fmt::format("limit `{}` must be a table", key.str()));
    std::ostringstream json;
    json << toml::json_formatter(*table);
    const auto read = parse_limit(json.str(), true);
    if (!read) {
      const std::string& subject = read.error().subject;
      const std::size_t dot = subject.find('.');
      const toml::node* member =
          dot == std::string::npos
              ? nullptr
              : table->get(subject.substr(dot + 1, subject.find('.', dot + 1) - dot - 1));
      return complain(member == nullptr ? node.source() : member->source(), read.error().message);
    }
    if (const Status usable = internal::check_limit(key.str(), read->limit, true); !usable)
      return complain(key.source(), usable.error().message);
    settings_.limits.emplace_back(key.str(), read->limit);
    return {};
  }

  /// [worker], as qo writes it.
  Status read_worker(const toml::key& key, const toml::node& node) {
    WorkerAging& worker = settings_.worker ? *settings_.worker : settings_.worker.emplace();
    if (key.str() == "priority_aging") {
      worker.enabled = node.value_exact<bool>();
      if (!worker.enabled) return complain(node.source(), "`priority_aging` must be true or false");
    } else if (key.str() == "priority_age_rate" || key.str() == "priority_age_cap") {
      const auto number = node.value_exact<std::int64_t>();
      if (!number || *number < 0 || *number > 255)
        return complain(node.source(),
                        fmt::format("`{}` must be a number from 0 to 255", key.str()));
      if (key.str() == "priority_age_rate")
        worker.rate = static_cast<std::uint32_t>(*number);
      else
        worker.cap = *number;
    } else {
      return complain(key.source(),
                      fmt::format("unknown key `{}` of worker; there are priority_aging, "
                                  "priority_age_rate, priority_age_cap",
                                  key.str()));
    }
    return {};
  }

  Status read_backpressure(const toml::node& node, QueueSettings& settings) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return complain(node.source(), "`backpressure` must be a table");
    for (const auto& [member, value] : *table) {
      Status read;
      if (member.str() == "max_depth") {
        read = read_jobs(member, value, settings.max_depth);
      } else if (member.str() == "max_size_bytes") {
        read = read_bytes(member, value, settings.max_size_bytes);
      } else if (member.str() == "tenant_max_depth") {
        read = read_jobs(member, value, settings.tenant_max_depth);
      } else if (member.str() == "tenant_max_size_bytes") {
        read = read_bytes(member, value, settings.tenant_max_size_bytes);
      } else if (member.str() == "tenant_bounds") {
        read = read_tenant_bounds(value, settings.tenant_bounds.emplace());
      } else if (member.str() == "strategy" || member.str() == "warning_threshold" ||
                 member.str() == "clear_threshold" || member.str() == "drop") {
        read = read_as_json("backpressure", member, value, settings);
      } else {
        read = complain(
            member.source(),
            fmt::format(
                "unknown key `{}` of backpressure; there are max_depth, max_size_bytes, strategy, "
                "warning_threshold, clear_threshold, drop, tenant_max_depth, "
                "tenant_max_size_bytes, tenant_bounds",
                member.str()));
      }
      if (!read) return read;
    }
    return {};
  }

  Status read_jobs(const toml::key& key, const toml::node& node,
                   std::optional<std::uint64_t>& jobs) {
    const auto number = node.value_exact<std::int64_t>();
    if (!number || *number < 0)
      return complain(node.source(),
                      fmt::format("`{}` must be a number of jobs; 0: unbounded", key.str()));
    jobs = static_cast<std::uint64_t>(*number);
    return {};
  }
  Status read_bytes(const toml::key& key, const toml::node& node,
                    std::optional<std::uint64_t>& read) {
    const auto bytes = shell::parse_bytes(scalar_text(node, false).value_or(""));
    if (!bytes)
      return complain(node.source(), fmt::format("`{}`: {}", key.str(), bytes.error().message));
    read = bytes.value();
    return {};
  }
  Status read_tenant_bounds(const toml::node& node, std::vector<TenantBound>& bounds) {
    const toml::table* tenants = node.as_table();
    if (tenants == nullptr)
      return complain(node.source(), "`tenant_bounds` must be a table of tenants");
    for (const auto& [tenant, value] : *tenants) {
      const toml::table* table = value.as_table();
      if (table == nullptr)
        return complain(value.source(),
                        fmt::format("the bounds of tenant `{}` must be a table", tenant.str()));
      TenantBound& bound = bounds.emplace_back();
      bound.tenant = tenant.str();
      for (const auto& [member, amount] : *table) {
        Status read;
        if (member.str() == "max_depth")
          read = read_jobs(member, amount, bound.max_depth);
        else if (member.str() == "max_size_bytes")
          read = read_bytes(member, amount, bound.max_size_bytes);
        else
          read = complain(member.source(),
                          fmt::format("unknown key `{}` of a tenant's bounds; there are max_depth, "
                                      "max_size_bytes",
                                      member.str()));
        if (!read) return read;
      }
    }
    return {};
  }

  Status read_default_priority(const toml::key& key, const toml::node& node) {
    const auto text =
        node.is_integer() || node.is_string() ? scalar_text(node, false) : std::nullopt;
    if (!text)
      return complain(node.source(),
                      fmt::format("the priority of `{}` must be a number or a name", key.str()));
    if (const Status usable = internal::check_type(key.str()); !usable)
      return complain(key.source(), fmt::format("`{}`: {}", key.str(), usable.error().message));
    settings_.default_priorities.push_back(
        {std::string(key.str()), *text, fmt::format("{}:{}", path_, node.source().begin.line)});
    return {};
  }

  Status each_in(const toml::key& key, const toml::node& node,
                 Status (Reader::*read_one)(const toml::key&, const toml::node&)) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      return complain(node.source(), fmt::format("`{}` must be a table", key.str()));
    for (const auto& [member, value] : *table) {
      const Status done = (this->*read_one)(member, value);
      if (!done) return done;
    }
    return {};
  }

  Status take_text(const toml::key& key, const toml::node& node, std::string& target) {
    const auto text = node.value_exact<std::string>();
    if (!text) return complain(node.source(), fmt::format("`{}` must be a string", key.str()));
    target = *text;
    return {};
  }

  static bool is_decimal(const toml::node& node) {
    const auto* number = node.as_integer();
    return number != nullptr && number->flags() != toml::value_flags::format_as_octal;
  }

  /// The value as a flag would give it. TOML's 0o660 is a number, a mode is read in octal.
  static std::optional<std::string> scalar_text(const toml::node& node, bool octal) {
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const auto number = node.value_exact<std::int64_t>()) {
      return octal ? fmt::format("{:o}", *number) : fmt::format("{}", *number);
    }
    if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
    return std::nullopt;
  }

  const std::string& path_;
  Settings& settings_;
};

}  // namespace

Status read_config_file(const std::string& path, Settings& settings) {
  const auto text = shell::read_text_file(path);
  if (!text) return text.error();
  Reader reader(path, settings);
  try {
    return reader.read(toml::parse(text.value(), path));
  } catch (const toml::parse_error& problem) {
    return reader.complain(problem.source(), problem.description());
  }
}

}  // namespace ojs_shm::broker
