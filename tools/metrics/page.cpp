// SPDX-License-Identifier: Apache-2.0
#include "tools/metrics/page.hpp"

#include <prometheus/text_serializer.h>
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "tools/shell/output.hpp"

namespace ojs_shm::metrics {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

void Page::family(const std::string& name, std::string help, MetricType type) {
  const auto [found, fresh] = place_.try_emplace(name, families_.size());
  if (fresh) families_.push_back({name, std::move(help), type, {}});
  current_ = found->second;
}

void Page::add(Labels labels, std::uint64_t value) {
  ClientMetric& metric = add(std::move(labels));
  const auto number = static_cast<double>(value);
  if (families_[current_].type == MetricType::Counter)
    metric.counter.value = number;
  else
    metric.gauge.value = number;
}

ClientMetric& Page::add(Labels labels) {
  ClientMetric& metric = families_[current_].metric.emplace_back();
  metric.label = std::move(labels);
  for (ClientMetric::Label& label : metric.label) label.value = shell::printable(label.value);
  metric.label.push_back({"segment", segment_});
  return metric;
}

void Page::add_counted(const MetricFamily& counted) {
  family(counted.name, counted.help, counted.type);
  for (const ClientMetric& series : counted.metric) {
    ClientMetric& metric = add(series.label);
    Labels labels = std::move(metric.label);
    metric = series;
    metric.label = std::move(labels);
  }
}

std::string Page::prometheus_text() const {
  return prometheus::TextSerializer().Serialize(families_);
}

namespace {

/// A float as the format asks for: with a point, and infinity with a sign.
std::string number(double value) {
  if (std::isinf(value)) return value < 0 ? "-Inf" : "+Inf";
  if (std::isnan(value)) return "NaN";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

/// Of a label's value or a help text: what would end the text or the line is written out.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '"' || c == '\\')
      out += {'\\', c};
    else
      out += c;
  }
  return out;
}

void write_sample(std::string& out, std::string_view name, const ClientMetric& metric,
                  std::string_view bound, std::string_view value) {
  out += name;
  out += '{';
  for (const ClientMetric::Label& label : metric.label)
    fmt::format_to(std::back_inserter(out), "{}{}=\"{}\"",
                   &label == &metric.label.front() ? "" : ",", label.name, escaped(label.value));
  if (!bound.empty())
    fmt::format_to(std::back_inserter(out), "{}le=\"{}\"", metric.label.empty() ? "" : ",", bound);
  fmt::format_to(std::back_inserter(out), "}} {}\n", value);
}

void write_histogram(std::string& out, const std::string& name, const ClientMetric& metric) {
  for (const auto& bucket : metric.histogram.bucket)
    write_sample(out, name + "_bucket", metric, number(bucket.upper_bound),
                 fmt::format("{}", bucket.cumulative_count));
  write_sample(out, name + "_count", metric, "", fmt::format("{}", metric.histogram.sample_count));
  write_sample(out, name + "_sum", metric, "", number(metric.histogram.sample_sum));
}

/// The family of a counter has the name without what each of its samples ends with.
std::string_view family_name(const MetricFamily& family) {
  constexpr std::string_view kTotal = "_total";
  std::string_view name = family.name;
  if (family.type == MetricType::Counter && name.ends_with(kTotal))
    name.remove_suffix(kTotal.size());
  return name;
}

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::Counter: return "counter";
    case MetricType::Histogram: return "histogram";
    default: return "gauge";
  }
}

}  // namespace

std::string Page::openmetrics_text() const {
  std::string out;
  for (const MetricFamily& family : families_) {
    if (family.metric.empty()) continue;
    const std::string name(family_name(family));
    fmt::format_to(std::back_inserter(out), "# TYPE {} {}\n# HELP {} {}\n", name,
                   type_name(family.type), name, escaped(family.help));
    for (const ClientMetric& metric : family.metric) {
      if (family.type == MetricType::Histogram)
        write_histogram(out, name, metric);
      else if (family.type == MetricType::Counter)
        write_sample(out, name + "_total", metric, "", number(metric.counter.value));
      else
        write_sample(out, name, metric, "", number(metric.gauge.value));
    }
  }
  out += "# EOF\n";
  return out;
}

}  // namespace ojs_shm::metrics
