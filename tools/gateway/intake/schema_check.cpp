// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/intake/schema_check.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <boost/regex.hpp>
#include <chrono>
#include <cmath>
#include <ctime>
#include <optional>
#include <set>
#include <vector>

#include "tools/gateway/replies/json_text.hpp"
#include "worker_api/json/canonical.hpp"
#include "worker_api/json/envelope_json.hpp"

namespace ojs_shm::gateway {
namespace {

using json::Kind;
using json::Member;

constexpr std::string_view kUnchecked[] = {
    "unevaluatedItems", "unevaluatedProperties", "$dynamicRef",  // 2020-12
    "$recursiveRef",    "additionalItems",       "dependencies", "divisibleBy", "disallow",
    "extends",
};

/// A name of a JSON pointer. Source: RFC 6901, 4.
std::string unescaped(std::string_view part) {
  std::string name;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::string_view two = part.substr(i, 2);
    name += two == "~0" ? '~' : two == "~1" ? '/' : part[i];
    if (two == "~0" || two == "~1") ++i;
  }
  return name;
}

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {"null", "boolean", "number", "string", "array", "object"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool has_type(std::string_view value, const std::string& type) {
  const Kind kind = json::kind_of(value);
  if (type != "integer") return type == name_of(kind);
  const auto number = json::number_of(value);
  return kind == Kind::kNumber && number && std::trunc(*number) == *number;
}

/// Characters, not bytes.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Time of this thread, not of the clock: a busy machine changes no verdict.
class Patience {
 public:
  bool is_over() const { return now() - begun_ > kMost; }

 private:
  static constexpr std::chrono::nanoseconds kMost = std::chrono::milliseconds(250);

  static std::chrono::nanoseconds now() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  std::chrono::nanoseconds begun_ = now();
};

class Check {
 public:
  explicit Check(std::string_view root) : root_(root) {}

  /// Empty, or the first reason. What cannot be checked stays one, also within a "not".
  std::string verdict(std::string_view value) {
    std::string why = problem(root_, value, "args", 0);
    return unchecked_.empty() ? why : unchecked_;
  }

 private:
  std::string problem(std::string_view schema, std::string_view value, const std::string& where,
                      unsigned depth);
  std::string cannot(std::string why) {
    if (unchecked_.empty()) unchecked_ = std::move(why);
    return unchecked_;
  }
  /// Of a schema whose parts are looked at again and again, or of long lists beside each other.
  std::string too_long(const std::string& where) {
    return cannot(where + ": the schema takes too long to be checked");
  }
  struct Place {
    std::string_view schema, value;
    const std::string& where;
    unsigned depth;
  };
  std::string of_keyword(const Member& keyword, const Place& at);
  std::string of_any_value(const Member& keyword, const Place& at);
  std::string of_parts(const Member& keyword, const Place& at);
  std::string of_number(const Member& keyword, const Place& at, double number);
  std::string of_text(const Member& keyword, const Place& at, const std::string& text);
  std::string of_array(const Member& keyword, const Place& at);
  std::string of_contained(std::string_view schema, const std::vector<std::string_view>& elements,
                           const Place& at);
  std::string of_object(const Member& keyword, const Place& at);
  std::string of_values(const Member& keyword, const Place& at, const std::vector<Member>& members);
  bool fits(std::string_view schema, const Place& at) {
    return problem(schema, at.value, at.where, at.depth + 1).empty();
  }

  std::string_view root_;
  Patience patience_;
  std::string unchecked_;  ///< the first reason why something could not be checked
};

std::string Check::problem(std::string_view schema, std::string_view value,
                           const std::string& where, unsigned depth) {
  schema = json::trim(schema);
  if (!unchecked_.empty()) return unchecked_;
  if (depth > kDeepestSchema)
    return cannot(where + ": the schema is nested too deeply to be checked");
  if (patience_.is_over()) return too_long(where);
  if (const auto any = json::bool_of(schema))
    return *any ? "" : where + ": nothing is allowed here";
  if (json::kind_of(schema) != Kind::kObject) return where + ": the schema is not an object";
  for (const Member& keyword : json::members_of(schema))
    if (std::string why = of_keyword(keyword, {schema, value, where, depth}); !why.empty())
      return why;
  return {};
}

std::string Check::of_keyword(const Member& keyword, const Place& at) {
  if (is_unchecked_keyword(keyword.name))
    return cannot(fmt::format("{}: the schema uses {}, which this gateway does not check", at.where,
                              keyword.name));
  if (std::string why = of_any_value(keyword, at); !why.empty()) return why;
  if (std::string why = of_parts(keyword, at); !why.empty()) return why;
  switch (json::kind_of(at.value)) {
    case Kind::kNumber: return of_number(keyword, at, json::number_of(at.value).value_or(0));
    case Kind::kString: return of_text(keyword, at, json::string_of(at.value).value_or(""));
    case Kind::kArray: return of_array(keyword, at);
    case Kind::kObject: return of_object(keyword, at);
    default: return {};
  }
}

std::string Check::of_any_value(const Member& keyword, const Place& at) {
  if (keyword.name == "type") {
    std::vector<std::string_view> types = {keyword.value};
    if (json::kind_of(keyword.value) == Kind::kArray) types = json::elements_of(keyword.value);
    const bool fit = std::ranges::any_of(types, [&](std::string_view type) {
      return has_type(at.value, json::string_of(type).value_or(""));
    });
    if (fit) return {};
    return fmt::format("{}: {} is expected, not {}", at.where, keyword.value,
                       name_of(json::kind_of(at.value)));
  }
  if (keyword.name == "const" && json::canonical(keyword.value) != json::canonical(at.value))
    return fmt::format("{}: must be {}", at.where, keyword.value.substr(0, 100));
  if (keyword.name == "enum" && json::kind_of(keyword.value) == Kind::kArray) {
    const std::string given = json::canonical(at.value);
    const auto allowed = json::elements_of(keyword.value);
    if (std::ranges::none_of(allowed, [&](auto each) { return json::canonical(each) == given; }))
      return fmt::format("{}: must be one of {}", at.where, keyword.value.substr(0, 100));
  }
  return {};
}

/// Schemas within the schema that hold for the same value.
std::string Check::of_parts(const Member& keyword, const Place& at) {
  const std::string_view name = keyword.name;
  if (name == "$ref") {
    const auto target = schema_target(root_, json::string_of(keyword.value).value_or(""));
    if (!target) return cannot(fmt::format("{}: {} is not in the schema", at.where, keyword.value));
    return problem(*target, at.value, at.where, at.depth + 1);
  }
  if (name == "not" && fits(keyword.value, at)) return at.where + ": must not fit \"not\"";
  if (name == "if") {
    const auto then = member_within(at.schema, fits(keyword.value, at) ? "then" : "else");
    return then ? problem(*then, at.value, at.where, at.depth + 1) : "";
  }
  if ((name != "allOf" && name != "anyOf" && name != "oneOf") ||
      json::kind_of(keyword.value) != Kind::kArray)
    return {};
  std::size_t fitting = 0;
  for (const std::string_view part : json::elements_of(keyword.value)) {
    std::string why = problem(part, at.value, at.where, at.depth + 1);
    if (!why.empty() && name == "allOf") return why;
    fitting += why.empty() ? 1 : 0;
    if (fitting != 0 && name == "anyOf") return {};
  }
  if (name == "anyOf" && fitting == 0) return at.where + ": fits none of \"anyOf\"";
  if (name == "oneOf" && fitting != 1)
    return fmt::format("{}: fits {} of \"oneOf\"", at.where, fitting);
  return {};
}

std::string Check::of_number(const Member& keyword, const Place& at, double number) {
  const auto bound = json::number_of(keyword.value);
  if (!bound) return {};
  const bool wrong = (keyword.name == "minimum" && number < *bound) ||
                     (keyword.name == "maximum" && number > *bound) ||
                     (keyword.name == "exclusiveMinimum" && number <= *bound) ||
                     (keyword.name == "exclusiveMaximum" && number >= *bound) ||
                     (keyword.name == "multipleOf" && *bound > 0 &&
                      std::abs(std::remainder(number, *bound)) > 1e-9 * *bound);
  return wrong ? fmt::format("{}: {} is {}", at.where, keyword.name, keyword.value) : "";
}

/// Nothing: the expression is none, or takes too long on this text.
std::optional<bool> matches(const std::string& text, const std::string& pattern) {
  try {
    return boost::regex_search(text, boost::regex(pattern));
  } catch (const std::runtime_error&) {
    return {};
  }
}

std::string Check::of_text(const Member& keyword, const Place& at, const std::string& text) {
  if (keyword.name == "pattern") {
    const auto fit = matches(text, json::string_of(keyword.value).value_or(""));
    if (!fit)
      return cannot(fmt::format("{}: the pattern {} cannot be checked", at.where, keyword.value));
    if (!*fit) return fmt::format("{}: does not match {}", at.where, keyword.value);
  }
  const auto bound = json::number_of(keyword.value);
  if (!bound) return {};
  const auto length = static_cast<double>(length_of(text));
  const bool wrong = (keyword.name == "minLength" && length < *bound) ||
                     (keyword.name == "maxLength" && length > *bound);
  return wrong ? fmt::format("{}: {} is {}", at.where, keyword.name, keyword.value) : "";
}

std::string Check::of_array(const Member& keyword, const Place& at) {
  const auto elements = json::elements_of(at.value);
  const auto prefix = member_within(at.schema, "prefixItems");
  const std::vector<std::string_view> first = prefix && json::kind_of(*prefix) == Kind::kArray
                                                  ? json::elements_of(*prefix)
                                                  : std::vector<std::string_view>();
  const auto of_element = [&](std::size_t i, std::string_view schema) {
    return problem(schema, elements[i], fmt::format("{}[{}]", at.where, i), at.depth + 1);
  };
  if (keyword.name == "prefixItems")
    for (std::size_t i = 0; i < std::min(first.size(), elements.size()); ++i)
      if (std::string why = of_element(i, first[i]); !why.empty()) return why;
  if (keyword.name == "items")
    for (std::size_t i = first.size(); i < elements.size(); ++i)
      if (std::string why = of_element(i, keyword.value); !why.empty()) return why;
  if (keyword.name == "uniqueItems" && json::bool_of(keyword.value).value_or(false)) {
    std::set<std::string> seen;
    for (const std::string_view each : elements)
      if (!seen.insert(json::canonical(each)).second)
        return at.where + ": an element is there twice";
  }
  if (keyword.name == "contains") return of_contained(keyword.value, elements, at);
  const auto bound = json::number_of(keyword.value);
  if (!bound) return {};
  const auto count = static_cast<double>(elements.size());
  const bool wrong = (keyword.name == "minItems" && count < *bound) ||
                     (keyword.name == "maxItems" && count > *bound);
  return wrong ? fmt::format("{}: {} is {}", at.where, keyword.name, keyword.value) : "";
}

/// `minContains`, else one, to `maxContains` elements fit.
std::string Check::of_contained(std::string_view schema,
                                const std::vector<std::string_view>& elements, const Place& at) {
  const auto number = [&](std::string_view name) -> std::optional<double> {
    const auto given = member_within(at.schema, name);
    return given ? json::number_of(*given) : std::nullopt;
  };
  const auto fitting = static_cast<double>(std::ranges::count_if(
      elements, [&](auto each) { return problem(schema, each, at.where, at.depth + 1).empty(); }));
  if (fitting < number("minContains").value_or(1))
    return at.where + ": too few elements fit \"contains\"";
  if (fitting > number("maxContains").value_or(fitting))
    return at.where + ": too many elements fit \"contains\"";
  return {};
}

std::string Check::of_object(const Member& keyword, const Place& at) {
  const auto members = json::members_of(at.value);
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(members, [&](const Member& each) { return each.name == name; });
  };
  const auto missing = [&](std::string_view names) -> std::string {
    for (const std::string_view each : json::elements_of(names)) {
      if (patience_.is_over()) return too_long(at.where);
      if (const auto name = json::string_of(each); name && !has(*name))
        return fmt::format("{}.{} is missing", at.where, *name);
    }
    return {};
  };
  if (keyword.name == "required" && json::kind_of(keyword.value) == Kind::kArray)
    return missing(keyword.value);
  if (keyword.name == "dependentRequired" && json::kind_of(keyword.value) == Kind::kObject)
    for (const Member& each : json::members_of(keyword.value))
      if (has(each.name) && json::kind_of(each.value) == Kind::kArray)
        if (std::string why = missing(each.value); !why.empty()) return why;
  if (keyword.name == "dependentSchemas")
    for (const Member& each : members_within(keyword.value)) {
      if (patience_.is_over()) return too_long(at.where);
      if (!has(each.name)) continue;
      if (std::string why = problem(each.value, at.value, at.where, at.depth + 1); !why.empty())
        return why;
    }
  if (keyword.name == "propertyNames")
    for (const Member& each : members)
      if (std::string why = problem(keyword.value, quoted(each.name), at.where, at.depth + 1);
          !why.empty())
        return why + " (a name of a member)";
  if (keyword.name == "properties" || keyword.name == "patternProperties" ||
      keyword.name == "additionalProperties")
    return of_values(keyword, at, members);
  const auto bound = json::number_of(keyword.value);
  if (!bound) return {};
  const auto count = static_cast<double>(members.size());
  const bool wrong = (keyword.name == "minProperties" && count < *bound) ||
                     (keyword.name == "maxProperties" && count > *bound);
  return wrong ? fmt::format("{}: {} is {}", at.where, keyword.name, keyword.value) : "";
}

/// Schemas for the values of the members.
std::string Check::of_values(const Member& keyword, const Place& at,
                             const std::vector<Member>& members) {
  const auto properties = member_within(at.schema, "properties");
  const auto patterns = member_within(at.schema, "patternProperties");
  for (const Member& each : members) {
    if (patience_.is_over()) return too_long(at.where);
    const std::string where = at.where + "." + each.name;
    const auto own = properties ? member_within(*properties, each.name) : std::nullopt;
    bool is_named = own.has_value();
    std::string why;
    for (const Member& pattern : members_within(patterns.value_or("null"))) {
      const auto fit = matches(each.name, pattern.name);
      if (!fit)
        return cannot(fmt::format("{}: the pattern {} cannot be checked", where, pattern.name));
      is_named = is_named || *fit;
      if (*fit && why.empty() && keyword.name == "patternProperties")
        why = problem(pattern.value, each.value, where, at.depth + 1);
    }
    if (keyword.name == "properties" && own) why = problem(*own, each.value, where, at.depth + 1);
    if (keyword.name == "additionalProperties" && !is_named)
      why = problem(keyword.value, each.value, where, at.depth + 1);
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace

std::string schema_problem(std::string_view schema, std::string_view value) {
  return Check(schema).verdict(value);
}

bool is_unchecked_keyword(std::string_view name) {
  return std::ranges::find(kUnchecked, name) != std::end(kUnchecked);
}

std::vector<json::Member> members_within(std::string_view value) {
  if (json::kind_of(value) != json::Kind::kObject) return {};
  return json::members_of(value);
}

std::optional<std::string_view> member_within(std::string_view object, std::string_view name) {
  for (const json::Member& each : members_within(object))
    if (each.name == name) return each.value;
  return {};
}

std::optional<std::string_view> schema_target(std::string_view root, const std::string& reference) {
  if (reference == "#") return root;
  if (!reference.starts_with("#/")) return {};
  std::string_view rest = std::string_view(reference).substr(2), found = root;
  for (;;) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const auto next = member_within(found, unescaped(rest.substr(0, end)));
    if (!next || end == rest.size()) return next;
    found = *next;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace ojs_shm::gateway
