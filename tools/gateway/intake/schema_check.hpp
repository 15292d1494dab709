// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace ojs_shm::gateway {

/// Why a JSON value does not fit a JSON Schema (draft 2020-12), with the place in the value; empty: it
/// fits. A keyword that would restrict the value and is not known here is a reason, too: what was not
/// checked is not called valid. `format` is a note, as the draft has it. Both have passed
/// json::check(). Pure.
std::string schema_problem(std::string_view schema, std::string_view value);

/// Why a JSON value is not a schema of that draft, as far as its own words about its draft, its types,
/// its required members and the schemas inside go; empty: it may be one. It has passed json::check().
/// Pure.
std::string schema_fault(std::string_view schema);

}  // namespace ojs_shm::gateway
