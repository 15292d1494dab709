// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command_result.hpp"

#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>

#include "tools/shell/output.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::cli {
namespace {

/// Source: RFC 4648, section 4.
std::string base64(std::string_view bytes) {
  namespace iterators = boost::archive::iterators;
  using Encoded = iterators::base64_from_binary<
      iterators::transform_width<std::string_view::const_iterator, 6, 8>>;
  std::string text(Encoded(bytes.begin()), Encoded(bytes.end()));
  text.append((3 - bytes.size() % 3) % 3, '=');
  return text;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string as_json(std::string_view written) {
  const std::string_view text = trimmed(written);
  if (text.empty() || json::check(text)) return std::string(text);
  if (!shell::is_utf8(written))
    return "{\"encoding\":\"base64\",\"data\":\"" + base64(written) + "\"}";
  std::string quoted;
  json::append_quoted(quoted, text);
  return quoted;
}

}  // namespace ojs_shm::cli
