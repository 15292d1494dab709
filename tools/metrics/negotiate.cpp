// SPDX-License-Identifier: Apache-2.0
#include "tools/metrics/negotiate.hpp"

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <charconv>

namespace ojs_shm::metrics {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Takes what stands before the separator, and the separator, off the front of `rest`.
std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return trimmed(part);
}

/// In thousandths, by the parameter q; 1000 without one, 0 for a value that is not a number.
int quality(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view parameter = next_part(parameters, ';');
    if (!boost::algorithm::istarts_with(parameter, "q=")) continue;
    const std::string_view digits = parameter.substr(2);
    double value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = read.ec == std::errc{} && read.ptr == digits.data() + digits.size();
    return whole && value >= 0 && value <= 1 ? static_cast<int>(value * 1000) : 0;
  }
  return 1000;
}

}  // namespace

bool wants_openmetrics(std::string_view accept) {
  int openmetrics = 0, text = 0;
  while (!accept.empty()) {
    std::string_view range = next_part(accept, ',');
    const std::string_view type = next_part(range, ';');
    if (boost::algorithm::iequals(type, "application/openmetrics-text"))
      openmetrics = std::max(openmetrics, quality(range));
    else if (boost::algorithm::iequals(type, "text/plain"))
      text = std::max(text, quality(range));
  }
  return openmetrics != 0 && openmetrics >= text;
}

}  // namespace ojs_shm::metrics
