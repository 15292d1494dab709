// SPDX-License-Identifier: Apache-2.0
#include "tools/top/options.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::top {
namespace {

void write_rates(json::ObjectWriter& writer, std::string_view name,
                 const std::vector<CounterInfo>& counters,
                 const std::vector<std::optional<double>>& rates) {
  json::ObjectWriter inner(writer.open(name));
  for (std::size_t i = 0; i < counters.size() && i < rates.size(); ++i)
    if (rates[i]) inner.number(counters[i].label, *rates[i]);
  inner.close();
}

}  // namespace

/// The census, whether the segment's file is gone, and the rates that only a program knows that has
/// looked before.
std::string print_sample(const Sample& sample) {
  std::string text = print_census(sample.census);
  text.pop_back();
  text += sample.removed ? ",\"removed\":true" : ",\"removed\":false";
  text += ",\"rates\":";
  json::ObjectWriter rates(text);
  for (std::size_t i = 0; i < kSpanCount; ++i) {
    const Sample::Span& span = sample.spans[i];
    json::ObjectWriter one(rates.open(kSpanNames[i]));
    write_rates(one, "totals", sample.census.queue_counters, span.totals);
    json::ObjectWriter queues(one.open("queues"));
    for (std::size_t q = 0; q < span.queues.size(); ++q)
      write_rates(queues, sample.census.queues[q].info.name, sample.census.queue_counters,
                  span.queues[q]);
    queues.close();
    one.close();
  }
  rates.close();
  return text + "}";
}

}  // namespace ojs_shm::top
