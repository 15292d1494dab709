// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::gateway {

/// Why a JSON value does not fit a JSON Schema (draft 2020-12), with the place in the value; empty:
/// it fits. A keyword that would restrict the value and is not checked here is a reason, too: what
/// was not checked is not called valid. Such a schema is refused before. `format` is a note, as the
/// draft has it. A check that takes the thread more than 250 ms is given up, and is a reason. Both
/// have passed json::check().
std::string schema_problem(std::string_view schema, std::string_view value);

/// A schema that refers to itself without end, or a value that deep, is refused.
constexpr unsigned kDeepestSchema = 64;

/// Whether the keyword would restrict values, and is not checked: of this draft or an older one.
bool is_unchecked_keyword(std::string_view name);
/// The members of an object; none of anything else.
std::vector<json::Member> members_within(std::string_view value);
/// One of them.
std::optional<std::string_view> member_within(std::string_view object, std::string_view name);
/// "#" and "#/$defs/NAME", within the schema `root`.
std::optional<std::string_view> schema_target(std::string_view root, const std::string& reference);

}  // namespace ojs_shm::gateway
