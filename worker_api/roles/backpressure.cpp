// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/backpressure.hpp>

#include <array>
#include <cstddef>

namespace ojs_shm {
namespace {

constexpr std::array<std::string_view, 3> kStrategies = {"reject", "block", "drop_oldest"};
constexpr std::array<std::string_view, 2> kDropOrders = {"oldest", "lowest_priority"};

template <class Value, std::size_t N>
std::optional<Value> by_name(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<Value>(i);
  return std::nullopt;
}

}  // namespace

std::string_view strategy_name(BackpressureStrategy strategy) noexcept {
  const auto index = static_cast<std::size_t>(strategy);
  return index < kStrategies.size() ? kStrategies[index] : "unknown";
}
std::optional<BackpressureStrategy> strategy_by_name(std::string_view name) noexcept {
  return by_name<BackpressureStrategy>(kStrategies, name);
}
std::string_view drop_order_name(DropOrder order) noexcept {
  const auto index = static_cast<std::size_t>(order);
  return index < kDropOrders.size() ? kDropOrders[index] : "unknown";
}
std::optional<DropOrder> drop_order_by_name(std::string_view name) noexcept {
  return by_name<DropOrder>(kDropOrders, name);
}

}  // namespace ojs_shm
