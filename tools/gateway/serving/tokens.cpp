// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/serving/tokens.hpp"

#include <spdlog/fmt/fmt.h>

#include <boost/beast/core/string.hpp>
#include <mutex>
#include <sstream>

#include "tools/shell/refusal.hpp"
#include "tools/shell/text_file.hpp"

namespace ojs_shm::gateway {
namespace {

constexpr std::size_t kShortest = 16;

std::uint8_t scopes_of(std::string_view names, const std::string& where) {
  std::uint8_t scopes = 0;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    if (name == "read")
      scopes |= static_cast<std::uint8_t>(Scope::kRead);
    else if (name == "write")
      scopes |= static_cast<std::uint8_t>(Scope::kWrite);
    else if (name == "admin")
      scopes |= 7;
    else
      shell::refuse(Code::kInvalid,
                    fmt::format("{}: '{}' is not a scope; there are read, write and "
                                "admin, joined by commas",
                                where, name));
  }
  return scopes;
}

/// Looks at every byte whatever it finds.
bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace

std::string_view scope_name(Scope scope) noexcept {
  switch (scope) {
    case Scope::kNone: return "none";
    case Scope::kRead: return "read";
    case Scope::kWrite: return "write";
    case Scope::kAdmin: return "admin";
  }
  return "none";
}

void Tokens::read(const std::string& path) {
  std::istringstream lines(shell::must(shell::read_text_file(path)));
  std::vector<Token> tokens;
  std::string line;
  for (unsigned number = 1; std::getline(lines, line); ++number) {
    const std::string where = fmt::format("{}:{}", path, number);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string token, scopes, more;
    if (!(words >> token)) continue;
    if (!(words >> scopes) || (words >> more))
      shell::refuse(
          Code::kInvalid,
          fmt::format("{}: a line has a token and its scopes, such as read,write", where));
    if (token.size() < kShortest)
      shell::refuse(Code::kInvalid, fmt::format("{}: the token has {} characters; at least {} keep "
                                                "it from being guessed",
                                                where, token.size(), kShortest));
    tokens.push_back({token, scopes_of(scopes, where)});
  }
  if (tokens.empty())
    shell::refuse(Code::kInvalid, fmt::format("{} has no token; write one line for each, a token "
                                              "and its scopes",
                                              path));
  const std::lock_guard lock(mutex_);
  tokens_ = std::move(tokens);
  given_ = true;
}

std::vector<std::string_view> Tokens::scopes_for(std::string_view authorization) const {
  std::vector<std::string_view> names;
  for (const Scope scope : {Scope::kRead, Scope::kWrite, Scope::kAdmin})
    if (judge(authorization, scope) == Verdict::kGranted) names.push_back(scope_name(scope));
  return names;
}

std::string_view Tokens::token_in(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (!boost::beast::iequals(authorization.substr(0, kScheme.size()), kScheme)) return {};
  return authorization.substr(kScheme.size());
}

Tokens::Verdict Tokens::judge(std::string_view authorization, Scope needed) const {
  if (empty() || needed == Scope::kNone) return Verdict::kGranted;
  const std::string_view given = token_in(authorization);
  Verdict verdict = Verdict::kUnknown;
  const std::shared_lock lock(mutex_);
  for (const Token& token : tokens_)
    if (same(token.text, given))
      verdict = (token.scopes & static_cast<std::uint8_t>(needed)) != 0 ? Verdict::kGranted
                                                                        : Verdict::kScopeMissing;
  return verdict;
}

}  // namespace ojs_shm::gateway
