// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/intake/schema_fault.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <boost/regex.hpp>
#include <cmath>
#include <set>
#include <span>
#include <vector>

#include "tools/gateway/intake/schema_check.hpp"

namespace ojs_shm::gateway {
namespace {

using json::Kind;
using json::Member;

using Names = std::span<const std::string_view>;

constexpr std::string_view kDraft = "https://json-schema.org/draft/2020-12/schema";
constexpr std::string_view kTypes[] = {"null",  "boolean", "number", "string",
                                       "array", "object",  "integer"};
constexpr std::string_view kNumbers[] = {"minimum", "maximum", "exclusiveMinimum",
                                         "exclusiveMaximum", "multipleOf"};
constexpr std::string_view kCounts[] = {"minLength",   "maxLength",     "minItems",
                                        "maxItems",    "minProperties", "maxProperties",
                                        "minContains", "maxContains"};
constexpr std::string_view kHoldOne[] = {
    "items", "not", "additionalProperties", "propertyNames", "if", "then", "else", "contains"};
constexpr std::string_view kHoldList[] = {"allOf", "anyOf", "oneOf", "prefixItems"};
constexpr std::string_view kHoldNamed[] = {"properties", "patternProperties", "dependentSchemas",
                                           "$defs", "definitions"};

bool is_one_of(Names names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool are_texts(std::string_view value) {
  return json::kind_of(value) == Kind::kArray &&
         std::ranges::all_of(json::elements_of(value),
                             [](auto each) { return json::kind_of(each) == Kind::kString; });
}

bool is_expression(const std::string& text) {
  try {
    const boost::regex expression(text);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

bool are_types(std::string_view value) {
  std::vector<std::string_view> types = {value};
  if (json::kind_of(value) == Kind::kArray) types = json::elements_of(value);
  return std::ranges::all_of(types, [](std::string_view type) {
    return is_one_of(kTypes, json::string_of(type).value_or(""));
  });
}

/// What is wrong with a schema of draft 2020-12: its draft, the values of its keywords, the schemas
/// inside.
class Walk {
 public:
  explicit Walk(std::string_view root) : root_(root) {}
  SchemaFault of_schema(std::string_view schema, unsigned depth);

 private:
  SchemaFault of_keyword(const Member& keyword, unsigned depth);
  SchemaFault of_reference(const std::string& reference, unsigned depth);
  SchemaFault of_parts(const Member& keyword, unsigned depth);

  std::string_view root_;
  std::set<std::string> followed_;  ///< references whose schemas have been looked at
};

/// What the value of a keyword that holds no schemas must be; empty: it is so.
std::string_view expected_of(const Member& keyword) {
  const std::string_view name = keyword.name, value = keyword.value;
  const Kind kind = json::kind_of(value);
  if (is_one_of(kNumbers, name)) {
    const auto number = json::number_of(value);
    if (!number) return "a number";
    if (name == "multipleOf" && *number <= 0) return "a number above zero";
  }
  if (is_one_of(kCounts, name)) {
    const auto number = json::number_of(value);
    if (!number || *number < 0 || std::trunc(*number) != *number) return "a whole number";
  }
  if (name == "uniqueItems" && !json::bool_of(value)) return "true or false";
  if (name == "type" && !are_types(value)) return "types of JSON";
  if (name == "enum" && kind != Kind::kArray) return "an array";
  if (name == "required" && !are_texts(value)) return "an array of texts";
  if (name == "dependentRequired" &&
      (kind != Kind::kObject || !std::ranges::all_of(json::members_of(value), [](const auto& each) {
         return are_texts(each.value);
       })))
    return "an object of arrays of texts";
  if (name == "pattern") {
    const auto text = json::string_of(value);
    if (!text || !is_expression(*text)) return "a regular expression";
  }
  return {};
}

/// References beyond the schema are not followed. A reference may make a schema of what is none
/// without it.
SchemaFault Walk::of_reference(const std::string& reference, unsigned depth) {
  if (reference != "#" && !reference.starts_with("#/"))
    return {fmt::format("$ref to {}, which is not in this schema", reference.substr(0, 100)), true};
  const auto target = schema_target(root_, reference);
  if (!target) return {fmt::format("$ref to {}, which is not there", reference.substr(0, 100))};
  if (reference == "#" || !followed_.insert(reference).second) return {};
  return of_schema(*target, depth + 1);
}

SchemaFault Walk::of_parts(const Member& keyword, unsigned depth) {
  const Kind kind = json::kind_of(keyword.value);
  std::vector<std::string_view> parts;
  if (is_one_of(kHoldOne, keyword.name)) parts = {keyword.value};
  if (is_one_of(kHoldList, keyword.name)) {
    if (kind != Kind::kArray) return {keyword.name + " must be an array"};
    parts = json::elements_of(keyword.value);
  }
  if (is_one_of(kHoldNamed, keyword.name)) {
    if (kind != Kind::kObject) return {keyword.name + " must be an object"};
    for (const Member& each : json::members_of(keyword.value)) {
      if (keyword.name == "patternProperties" && !is_expression(each.name))
        return {fmt::format("patternProperties: {} is not a regular expression", each.name)};
      parts.push_back(each.value);
    }
  }
  for (const std::string_view part : parts)
    if (SchemaFault fault = of_schema(part, depth + 1); !fault.why.empty()) return fault;
  return {};
}

SchemaFault Walk::of_keyword(const Member& keyword, unsigned depth) {
  if (is_unchecked_keyword(keyword.name) || (keyword.name == "$id" && depth != 0))
    return {fmt::format("it uses {}{}, which this gateway does not check", keyword.name,
                        depth == 0 ? "" : " inside"),
            true};
  if (keyword.name == "$schema") {
    std::string named = json::string_of(keyword.value).value_or("");
    if (named.ends_with('#')) named.pop_back();
    if (named != kDraft) return {fmt::format("$schema must be {}", kDraft)};
  }
  if (keyword.name == "$ref") {
    const auto reference = json::string_of(keyword.value);
    if (!reference) return {"$ref must be a text"};
    return of_reference(*reference, depth);
  }
  if (const std::string_view expected = expected_of(keyword); !expected.empty())
    return {
        fmt::format("{} must be {}, not {}", keyword.name, expected, keyword.value.substr(0, 100))};
  return of_parts(keyword, depth);
}

SchemaFault Walk::of_schema(std::string_view schema, unsigned depth) {
  schema = json::trim(schema);
  if (json::bool_of(schema)) return {};
  if (depth > kDeepestSchema) return {"the schema is nested too deeply"};
  if (json::kind_of(schema) != Kind::kObject) return {"a schema is an object or a boolean"};
  for (const Member& keyword : json::members_of(schema))
    if (SchemaFault fault = of_keyword(keyword, depth); !fault.why.empty()) return fault;
  return {};
}

}  // namespace

SchemaFault schema_fault(std::string_view schema) { return Walk(schema).of_schema(schema, 0); }

}  // namespace ojs_shm::gateway
