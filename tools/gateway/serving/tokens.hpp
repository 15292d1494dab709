// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ojs_shm::gateway {

/// What a request needs and a token grants. `admin` grants the rest too.
enum class Scope : std::uint8_t { kNone = 0, kRead = 1, kWrite = 2, kAdmin = 4 };

std::string_view scope_name(Scope scope) noexcept;

/// Bearer tokens of a file. Each line has a token, white space and its scopes, joined by commas; #
/// begins a remark. Without a token every request is let in. Thread-safe once there are tokens.
class Tokens {
 public:
  /// Takes the place of what was read before. Throws shell::Refusal, which names the file and the
  /// line; then nothing changes.
  void read(const std::string& path);
  bool empty() const { return !given_; }
  enum class Verdict : std::uint8_t { kGranted, kUnknown, kScopeMissing };
  /// `authorization` is the header of that name. Takes as long for every token of one length.
  Verdict judge(std::string_view authorization, Scope needed) const;
  /// The token of that header, known or not; empty: it has none.
  static std::string_view token_in(std::string_view authorization);
  /// The names of the scopes that it grants; admin grants the rest too.
  std::vector<std::string_view> scopes_for(std::string_view authorization) const;

 private:
  struct Token {
    std::string text;
    std::uint8_t scopes = 0;
  };
  bool given_ = false;  ///< stays as it was before the first request
  mutable std::shared_mutex mutex_;
  std::vector<Token> tokens_;
};

}  // namespace ojs_shm::gateway
