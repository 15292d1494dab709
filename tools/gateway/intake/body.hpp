// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/gateway/routes/exchange.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::gateway {

/// The members of a request's JSON object. Reads what a handler asks for and throws a Fault that
/// names the member when it is of another kind. An empty body is an object without members.
class Body {
 public:
  explicit Body(const Request& request);
  /// The body as it came; "{}" for an empty body.
  std::string_view object() const { return object_; }
  /// Of an object inside a body; `where` stands before the names of its members.
  Body(std::string_view object, std::string where);

  /// As it was written; nothing when the member is missing or null.
  std::optional<std::string_view> raw(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  std::string required_text(std::string_view name) const;
  std::optional<bool> flag(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<std::int64_t> integer(std::string_view name) const;
  /// From `least` to `most`.
  std::optional<std::uint32_t> whole(std::string_view name, std::uint32_t least,
                                     std::uint32_t most) const;
  /// Milliseconds: a number, or a duration as a text.
  std::optional<std::uint32_t> milliseconds(std::string_view name) const;
  /// Unix milliseconds of a time as RFC 3339 writes it.
  std::optional<std::uint64_t> moment(std::string_view name) const;
  std::optional<std::vector<std::string>> texts(std::string_view name) const;
  /// Of a job, in lower case.
  std::string required_id(std::string_view name) const;
  std::optional<std::vector<std::string>> ids(std::string_view name) const;
  std::optional<std::vector<std::string_view>> elements(std::string_view name) const;
  std::optional<Body> object(std::string_view name) const;
  /// Throws a Fault unless each member is one of these and says something: what was meant to choose
  /// some must not choose all.
  void choose_by(std::initializer_list<std::string_view> known) const;
  const std::vector<json::Member>& members() const { return members_; }

 private:
  [[noreturn]] void wrong_kind(std::string_view name, std::string_view expected) const;

  std::string_view object_ = "{}";
  std::string where_;
  std::vector<json::Member> members_;
};

}  // namespace ojs_shm::gateway
