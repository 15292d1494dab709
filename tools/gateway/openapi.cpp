// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/openapi.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include <ojs_shm/segment.hpp>

#include "tools/gateway/json_text.hpp"

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

void write_reply(json::ObjectWriter& replies, std::string_view status, std::string_view what,
                 std::string_view type, std::string_view schema) {
  json::ObjectWriter reply(replies.open(status));
  reply.text("description", what);
  json::ObjectWriter content(reply.open("content"));
  json::ObjectWriter media(content.open(type));
  media.value("schema", schema);
  media.close();
  content.close();
  reply.close();
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
  if (route.method == "POST" || route.method == "PUT" || route.method == "PATCH")
    operation.value(
        "requestBody",
        "{\"required\":false,\"content\":{\"application/openjobspec+json\":{\"schema\":{"
        "\"type\":\"object\"}},\"application/json\":{\"schema\":{\"type\":\"object\"}}}}");
  operation.value("security", route.scope == Scope::kNone
                                  ? "[]"
                                  : "[{\"bearer\":[" + quoted(scope_name(route.scope)) + "]}]");
  json::ObjectWriter replies(operation.open("responses"));
  if (std::holds_alternative<Streamer>(route.handler))
    write_reply(replies, "200", "Server-sent events", "text/event-stream", "{\"type\":\"string\"}");
  else if (route.path == "/metrics")
    write_reply(replies, "200", "Prometheus' text format", "text/plain", "{\"type\":\"string\"}");
  else
    write_reply(replies, "2XX", "Done", "application/openjobspec+json", "{\"type\":\"object\"}");
  if (route.path.ends_with("/{id}/result"))
    write_reply(replies, "410", "The result, or its job, is kept no longer: RESULT_PRUNED",
                "application/openjobspec+json", "{\"$ref\":\"#/components/schemas/Error\"}");
  write_reply(replies, "default", "Refused", "application/openjobspec+json",
              "{\"$ref\":\"#/components/schemas/Error\"}");
  replies.close();
  operation.close();
}

constexpr std::string_view kComponents =
    R"({"securitySchemes":{"bearer":{"type":"http","scheme":"bearer"}},"schemas":{"Error":{)"
    R"("type":"object","required":["error"],"properties":{"error":{"type":"object",)"
    R"("required":["code","message","retryable","request_id"],"properties":{)"
    R"("code":{"type":"string"},"type":{"type":"string"},"message":{"type":"string"},)"
    R"("retryable":{"type":"boolean"},"details":{"type":"object"},"hint":{"type":"string"},)"
    R"("docs_url":{"type":"string"},"request_id":{"type":"string"}}}}}}})";

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
    writer.value("components", kComponents);
  });
}

}  // namespace ojs_shm::gateway
