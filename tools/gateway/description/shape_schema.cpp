// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cassert>
#include <optional>
#include <vector>

#include "tools/gateway/description/shapes.hpp"
#include "tools/gateway/replies/json_text.hpp"

namespace ojs_shm::gateway {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// Parts between separators, but for those within brackets.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '[' || text[i] == '{';
    depth -= text[i] == ']' || text[i] == '}';
    if (text[i] != separator || depth != 0) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

const Shape& shape_named(std::string_view name) {
  const auto found = std::ranges::find(shapes(), name, &Shape::name);
  assert(found != shapes().end() && "a shape is named that is not in the table");
  return *found;
}

std::string schema_of_type(std::string_view type);

std::string schema_of_one(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"text", R"({"type":"string"})"},
      {"time", R"({"type":"string","format":"date-time"})"},
      {"integer", R"({"type":"integer"})"},
      {"number", R"({"type":"number"})"},
      {"boolean", R"({"type":"boolean"})"},
      {"null", R"({"type":"null"})"},
      {"any", "{}"},
      {"object", R"({"type":"object"})"},
      {"array", R"({"type":"array"})"},
  };
  for (const auto& [name, schema] : kTypes)
    if (name == type) return std::string(schema);
  const std::string_view inside = type.substr(1, type.size() - 2);
  switch (type.front()) {
    case '\'': return "{\"const\":" + quoted(inside) + "}";
    case '[': return "{\"type\":\"array\",\"items\":" + schema_of_type(inside) + "}";
    case '{':
      return "{\"type\":\"object\",\"additionalProperties\":" + schema_of_type(inside) + "}";
    default:
      return "{\"$ref\":\"#/components/schemas/" + std::string(shape_named(type).name) + "\"}";
  }
}

std::string schema_of_type(std::string_view type) {
  const auto either = split(type, '|');
  if (either.size() == 1) return schema_of_one(type);
  return "{\"anyOf\":" + array_of(either, schema_of_one) + "}";
}

struct Members {
  std::vector<std::pair<std::string_view, std::string>> schemas;
  std::vector<std::string_view> required;
  bool open = false;
};

void add_members(std::string_view text, bool may_miss, Members& members) {
  for (std::string_view part : split(text, ',')) {
    if (part == "...") {
      members.open = true;
      continue;
    }
    const std::size_t colon = part.find(':');
    std::string_view name = part.substr(0, colon);
    const bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    if (name.starts_with('+')) {
      add_members(shape_named(name.substr(1)).text, may_miss || optional, members);
      continue;
    }
    if (std::ranges::find(members.schemas, name, [](const auto& each) { return each.first; }) !=
        members.schemas.end())
      continue;
    members.schemas.emplace_back(name, schema_of_type(trimmed(part.substr(colon + 1))));
    if (!optional && !may_miss) members.required.push_back(name);
  }
}

}  // namespace

std::string schema_of(const Shape& shape) {
  if (shape.text.starts_with('=')) return schema_of_type(trimmed(shape.text.substr(1)));
  Members members;
  add_members(shape.text, false, members);
  return object([&](json::ObjectWriter& writer) {
    writer.text("type", "object");
    if (!members.required.empty()) writer.value("required", array_of(members.required, quoted));
    json::ObjectWriter properties(writer.open("properties"));
    for (const auto& [name, schema] : members.schemas) properties.value(name, schema);
    properties.close();
    if (members.open) writer.boolean("additionalProperties", true);
  });
}

}  // namespace ojs_shm::gateway
