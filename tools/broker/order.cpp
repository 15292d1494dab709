// SPDX-License-Identifier: Apache-2.0
#include "tools/broker/order.hpp"

#include <spdlog/fmt/fmt.h>

#include "engine/rules/convention.hpp"
#include "tools/shell/refusal.hpp"
#include "worker_api/roles/settings_check.hpp"

namespace ojs_shm::broker {
namespace {

Error complain(const std::string& place, std::string_view text) {
  return Error{Code::kInvalid, fmt::format("{}: {}", place, text)};
}

/// One member of [worker], and the member of [aging] that sets the same. What both tables say must
/// be the same.
template <class Value>
Status agree(const Settings& settings, std::string_view ours, const std::optional<Value>& said,
             std::string_view theirs, std::optional<Value>& target) {
  if (said && target && *said != *target)
    return complain(
        settings.places.of(fmt::format("worker.{}", ours)),
        fmt::format(
            "`{}` of [worker] contradicts `{}` of [aging] in {}: both are the ageing of queues "
            "without their own; say it once",
            ours, theirs, settings.places.of(fmt::format("aging.{}", theirs))));
  if (said) target = said;
  return {};
}

/// qo's words are those of its own convention, whatever that of the segment is.
Status settle_worker(Settings& settings, engine::Convention convention) {
  const WorkerAging& worker = *settings.worker;
  std::optional<bool> enabled;
  std::optional<std::string> preset;
  if (settings.aging) enabled = settings.aging->enabled;
  if (settings.aging && !settings.aging->preset.empty()) preset = settings.aging->preset;
  AgingSettings& aging = settings.aging ? *settings.aging : settings.aging.emplace();
  if (preset && *preset != "qo")
    return complain(
        settings.places.of("aging.preset"),
        fmt::format(
            "[worker] in {} is ageing of the preset 'qo', which contradicts the preset '{}'",
            settings.places.of("worker"), *preset));
  aging.preset = "qo";
  std::optional<std::int64_t> limit;
  if (worker.cap) limit = internal::limit_of_qo_cap(convention, *worker.cap);
  const std::string_view limit_name = settings.places.knows("aging.cap") ? "cap" : "floor";
  if (Status agreed = agree(settings, "priority_aging", worker.enabled, "enabled", enabled);
      !agreed)
    return agreed;
  if (Status agreed = agree(settings, "priority_age_rate", worker.rate, "rate", aging.rate);
      !agreed)
    return agreed;
  if (Status agreed = agree(settings, "priority_age_cap", limit, limit_name, aging.limit); !agreed)
    return agreed;
  aging.enabled = enabled.value_or(false);
  return {};
}

}  // namespace

Status settle_order(Settings& settings) {
  const auto convention =
      engine::convention_by_name(settings.options.convention).value_or(engine::Convention::kOjs);
  if (settings.aging)
    if (const Status usable = internal::check_default_aging(convention, *settings.aging); !usable)
      return complain(settings.places.of(usable.error().subject), usable.error().message);
  if (settings.worker)
    if (Status settled = settle_worker(settings, convention); !settled) return settled;
  for (const auto& [name, queue] : settings.queues)
    if (const Status usable = internal::check_queue_order(convention, name, queue, settings.aging);
        !usable)
      return complain(settings.places.of(fmt::format("queues.{}.{}", name, usable.error().subject)),
                      fmt::format("queue `{}`: {}", name, usable.error().message));
  return {};
}

}  // namespace ojs_shm::broker
