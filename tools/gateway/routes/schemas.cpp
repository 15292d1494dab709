// SPDX-License-Identifier: Apache-2.0
//
// Schemas by their URI. Source: ojs-http-binding 15.
#include <charconv>

#include "tools/gateway/description/openapi.hpp"
#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/schema_fault.hpp"
#include "tools/gateway/replies/job_reply.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/paging.hpp"
#include "tools/gateway/serving/hall.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {
namespace {

std::string schema_text(const SchemaEntry& entry, bool whole) {
  return object([&](json::ObjectWriter& writer) {
    writer.text("uri", entry.uri);
    writer.text("type", entry.type);
    writer.value("version", entry.version);
    if (whole) writer.value("schema", entry.schema);
    writer.text("created_at", print_timestamp(entry.created_at_ms));
  });
}

/// A whole number (ojs-http-binding 15.2), or a text of up to three of them joined by dots, perhaps
/// with more behind - or + (ojs-schema-registry 4).
void read_version(const Body& body, SchemaEntry& entry) {
  const auto given = body.raw("version");
  if (!given) return;
  entry.version = json::compact(*given);
  const auto words = json::string_of(*given);
  const std::string text = words ? *words : std::to_string(body.integer("version").value_or(0));
  const char *at = text.data(), *const end = at + text.size();
  for (std::uint64_t& part : entry.order) {
    const auto read = std::from_chars(at, end, part);
    if (read.ec != std::errc()) break;
    at = read.ptr;
    entry.released = at == end || *at != '-';
    if (at == end || *at == '-' || *at == '+') return;
    if (*at++ != '.' || &part == &entry.order.back()) break;
  }
  throw invalid_request("version must be a whole number, or a text such as \"1.0.0\"", "version");
}

Reply list(Desk& desk, const Request& request) {
  return ok(
      Slice::of(request).list({"schemas"}, desk.hall.schemas().all(),
                              [](const SchemaEntry& entry) { return schema_text(entry, false); }));
}

Reply put(Desk& desk, const Request& request) {
  const Body body(request);
  SchemaEntry entry;
  entry.uri = body.required_text("uri");
  entry.type = body.required_text("type");
  read_version(body, entry);
  const auto schema = body.object("schema");
  if (!schema) throw invalid_request("schema must be an object", "schema");
  entry.schema = json::compact(*body.raw("schema"));
  if (const SchemaFault found = schema_fault(entry.schema); !found.why.empty()) {
    Fault fault = found.unsupported
                      ? unsupported("this gateway cannot check by this schema: " + found.why)
                      : invalid_request("this is not a schema: " + found.why, "schema");
    fault.details.emplace_back("schema_error", quoted(found.why));
    throw fault;
  }
  entry.created_at_ms = desk.now_ms();
  Reply reply = ok("{\"schema\":" + schema_text(entry, false) + "}");
  reply.status = 201;
  if (!desk.hall.schemas().put(std::move(entry)))
    throw unsupported("this gateway keeps at most 1000 schemas; delete one first");
  return reply;
}

Reply get(Desk& desk, const Request& request) {
  const auto entry = desk.hall.schemas().find(request.names[0]);
  if (!entry) throw not_found("schema", request.names[0]);
  return ok("{\"schema\":" + schema_text(*entry, true) + "}");
}

Reply remove(Desk& desk, const Request& request) {
  if (!desk.hall.schemas().remove(request.names[0])) throw not_found("schema", request.names[0]);
  return ok("{\"deleted\":true,\"uri\":" + quoted(request.names[0]) + "}");
}

Reply openapi(Desk& desk, const Request&) {
  Reply reply = ok(openapi_text(Router(desk.hall.options().test_hooks).routes()));
  reply.content_type = "application/json";
  return reply;
}

}  // namespace

std::span<const Route> schema_routes() {
  static const Route kRoutes[] = {
      {"GET", "/ojs/v1/schemas", Scope::kRead, &list, {"", "SchemaList"}},
      {"POST", "/ojs/v1/schemas", Scope::kWrite, &put, {"NewSchema", "OneSchema"}},
      {"GET", "/ojs/v1/schemas/{uri}", Scope::kRead, &get, {"", "OneSchema"}},
      {"DELETE", "/ojs/v1/schemas/{uri}", Scope::kWrite, &remove, {"", "Deleted"}},
      {"GET", "/ojs/v1/openapi.json", Scope::kNone, &openapi, {"", "Description"}, Pace::kSlow},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
