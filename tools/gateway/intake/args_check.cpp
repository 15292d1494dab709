// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/intake/args_check.hpp"

#include <spdlog/fmt/fmt.h>

#include "tools/gateway/intake/schema_check.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"

namespace ojs_shm::gateway {
namespace {

/// What the job says of its schema, if it wants to be held against it.
struct Wish {
  bool there = false;
  std::string uri;
};

Wish wish_of(const std::string& extra) {
  Wish wish;
  if (extra.find("ojs_validate") == std::string::npos) return wish;
  for (const json::Member& member : json::members_of(extra)) {
    if (member.name == "schema") wish.uri = json::string_of(member.value).value_or("");
    if (member.name != "meta" || json::kind_of(member.value) != json::Kind::kObject) continue;
    for (const json::Member& meta : json::members_of(member.value))
      if (meta.name == "ojs_validate") wish.there = json::bool_of(meta.value).value_or(false);
  }
  return wish;
}

}  // namespace

void check_args(const SchemaBook& schemas, const Envelope& envelope) {
  const Wish wish = wish_of(envelope.extra);
  if (!wish.there) return;
  const auto entry = wish.uri.empty() ? schemas.find_for(envelope.type) : schemas.find(wish.uri);
  Fault fault{.status = 422, .code = "validation_error"};
  fault.details.emplace_back("field", "\"args\"");
  fault.details.emplace_back("job_type", quoted(envelope.type));
  if (!entry) {
    fault.message =
        fmt::format("the job asks for validation, but this gateway has no schema {}",
                    wish.uri.empty() ? "for the type " + envelope.type : wish.uri.substr(0, 256));
    fault.hint = "Register it with POST /ojs/v1/schemas, or leave meta.ojs_validate out.";
    throw fault;
  }
  const std::string problem = schema_problem(entry->schema, envelope.args);
  if (problem.empty()) return;
  fault.message = fmt::format("the args do not fit the schema {}: {}", entry->uri, problem);
  fault.details.emplace_back("schema", quoted(entry->uri));
  throw fault;
}

}  // namespace ojs_shm::gateway
