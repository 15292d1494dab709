// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "worker_api/json/envelope_json.hpp"

/// Small pieces of JSON text.
namespace ojs_shm::gateway {

/// An object whose members `write` writes.
template <class Write>
std::string object(Write write) {
  std::string out;
  json::ObjectWriter writer(out);
  write(writer);
  writer.close();
  return out;
}

inline std::string quoted(std::string_view text) {
  std::string out;
  json::append_quoted(out, text);
  return out;
}

/// An array of what `print` makes of each item.
template <class Items, class Print>
std::string array_of(const Items& items, Print print) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += ',';
    out += print(item);
  }
  return out += ']';
}

/// The object with the members of another behind its own.
inline std::string joined(std::string object, std::string_view more) {
  if (more.size() <= 2) return object;
  object.pop_back();
  if (object.size() > 1) object += ',';
  return object.append(more.substr(1));
}

/// The object without its member of that name.
inline std::string without(std::string_view json, std::string_view name) {
  return object([&](json::ObjectWriter& writer) {
    for (const json::Member& member : json::members_of(json))
      if (member.name != name) writer.value(member.name, member.value);
  });
}

/// {"NAME":OBJECT} with the members of the object beside it, for clients that read either. A member
/// of a client's own that has the same name is in the object alone.
inline std::string wrapped_and_flat(std::string_view name, std::string_view json) {
  const std::string key = quoted(name) + ':';
  const std::string out = '{' + key + std::string(json) + '}';
  return json.find(key) == std::string_view::npos ? joined(out, json)
                                                  : joined(out, without(json, name));
}

}  // namespace ojs_shm::gateway
