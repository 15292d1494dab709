// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/description/openapi.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include <ojs_shm/segment.hpp>

#include "tools/gateway/description/shapes.hpp"
#include "tools/gateway/replies/json_text.hpp"

namespace ojs_shm::gateway {
namespace {

std::vector<std::string> names_in(std::string_view path) {
  std::vector<std::string> names;
  for (std::size_t at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1))
    names.emplace_back(path.substr(at + 1, path.find('}', at) - at - 1));
  return names;
}

/// "jobs" of /ojs/v1/jobs/{id}, "admin" of /ojs/v1/admin/queues.
std::string tag_of(std::string_view path) {
  constexpr std::string_view kBase = "/ojs/v1/";
  if (!path.starts_with(kBase)) return "system";
  path.remove_prefix(kBase.size());
  return std::string(path.substr(0, path.find('/')));
}

std::string operation_id(const Route& route) {
  std::string id(route.method);
  std::ranges::transform(id, id.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char c : route.path) id += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return id;
}

constexpr std::string_view kJson = "application/openjobspec+json";

std::string reference(std::string_view shape) {
  return "{\"$ref\":\"#/components/schemas/" + std::string(shape) + "\"}";
}

std::string content(std::initializer_list<std::string_view> types, std::string_view schema) {
  return object([&](json::ObjectWriter& writer) {
    for (const std::string_view type : types) {
      json::ObjectWriter media(writer.open(type));
      media.value("schema", schema);
      media.close();
    }
  });
}

void write_reply(json::ObjectWriter& replies, std::string_view status, std::string_view what,
                 const std::string& content) {
  json::ObjectWriter reply(replies.open(status));
  reply.text("description", what);
  if (!content.empty()) reply.value("content", content);
  reply.close();
}

void write_replies(json::ObjectWriter& replies, const Route& route) {
  const std::string text = R"({"type":"string"})";
  const std::string error = content({kJson, "application/json"}, reference("Error"));
  const Bodies& bodies = route.bodies;
  const std::string own = content({kJson, "application/json"}, reference(bodies.gives));
  if (route.upgrades)
    write_reply(replies, "101", "A WebSocket of the subprotocol ojs.v1", "");
  else if (std::holds_alternative<Streamer>(route.handler))
    write_reply(replies, "200", "Server-sent events", content({"text/event-stream"}, text));
  else if (route.path == "/metrics")
    write_reply(replies, "200", "Prometheus' text format",
                content({"text/plain", "application/openmetrics-text"}, text));
  else if (bodies.gives.empty())
    write_reply(replies, "204", "Done", "");
  else
    write_reply(replies, "2XX", "Done", own);
  if (!bodies.also.empty())
    write_reply(replies, bodies.also, "What became of it, or an error",
                content({kJson, "application/json"}, "{\"anyOf\":[" + reference(bodies.gives) +
                                                         ',' + reference("Error") + "]}"));
  if (route.upgrades) write_reply(replies, "426", "It asks for no WebSocket", error);
  if (route.path.ends_with("/{id}/result"))
    write_reply(replies, "410", "The result, or its job, is kept no longer: RESULT_PRUNED", error);
  write_reply(replies, "default", "Refused", error);
}

void write_operation(json::ObjectWriter& path, const Route& route) {
  std::string method(route.method);
  std::ranges::transform(method, method.begin(), [](unsigned char c) { return std::tolower(c); });
  json::ObjectWriter operation(path.open(method));
  operation.text("operationId", operation_id(route));
  operation.value("tags", "[" + quoted(tag_of(route.path)) + "]");
  const auto names = names_in(route.path);
  if (!names.empty())
    operation.value("parameters", array_of(names, [](const std::string& name) {
                      return "{\"name\":" + quoted(name) +
                             ",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\"}}";
                    }));
  if (!route.bodies.takes.empty())
    operation.value("requestBody",
                    "{\"content\":" +
                        content({kJson, "application/json"}, reference(route.bodies.takes)) + "}");
  operation.value("security", route.scope == Scope::kNone
                                  ? "[]"
                                  : "[{\"bearer\":[" + quoted(scope_name(route.scope)) + "]}]");
  json::ObjectWriter replies(operation.open("responses"));
  write_replies(replies, route);
  replies.close();
  operation.close();
}

void write_components(json::ObjectWriter& components) {
  components.value("securitySchemes", R"({"bearer":{"type":"http","scheme":"bearer"}})");
  json::ObjectWriter schemas(components.open("schemas"));
  for (const Shape& shape : shapes()) schemas.value(shape.name, schema_of(shape));
  schemas.close();
}

}  // namespace

std::string openapi_text(std::span<const Route> routes) {
  std::map<std::string_view, std::vector<const Route*>> paths;
  for (const Route& route : routes)
    if (!route.file) paths[route.path].push_back(&route);
  return object([&](json::ObjectWriter& writer) {
    writer.text("openapi", "3.1.0");
    json::ObjectWriter info(writer.open("info"));
    info.text("title", "ojs-shm-gateway");
    info.text("version", library_version());
    info.text("description",
              "Open Job Spec over HTTP for a shared-memory segment; docs/gateway.md describes it.");
    info.close();
    json::ObjectWriter all(writer.open("paths"));
    for (const auto& [path, operations] : paths) {
      json::ObjectWriter one(all.open(path));
      for (const Route* route : operations) write_operation(one, *route);
      one.close();
    }
    all.close();
    json::ObjectWriter components(writer.open("components"));
    write_components(components);
    components.close();
  });
}

}  // namespace ojs_shm::gateway
