// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/routes/router.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/shell/known_id.hpp"

namespace ojs_shm::gateway {
namespace {

constexpr std::string_view kType = "application/openjobspec+json";

std::string_view cut(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  if (!path.empty() && path.front() == '/') path.remove_prefix(1);
  while (!path.empty()) parts.push_back(cut(path, '/'));
  return parts;
}

bool is_name(std::string_view part) { return part.starts_with('{'); }

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decoded(std::string_view text, bool plus_is_space) {
  if (text.find('%') == std::string_view::npos && !plus_is_space) return std::string(text);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? digit_of(text[i + 2]) : -1;
      if (high < 0 || low < 0 || (high == 0 && low == 0))
        throw invalid_request(
            "the request's target has a % that is not followed by two digits of a "
            "character");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

/// What stands for {..} in a path.
std::string name_in(std::string_view placeholder, std::string given) {
  return placeholder == "{id}" ? shell::known_id(std::move(given)) : std::move(given);
}

/// Whether the quality of a coding is zero: it is refused.
bool refused(std::string_view parameters) {
  const std::string_view quality = trimmed(parameters);
  return (quality.starts_with("q=0") || quality.starts_with("Q=0")) &&
         quality.find_first_of("123456789") == std::string_view::npos;
}

/// A body comes as it is. Source: ojs-payload-limits 6, RFC 9110, 15.5.16.
void admit_coding(const Request& request) {
  for (const auto& [name, value] : request.headers) {
    if (name != "content-encoding") continue;
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view coding = trimmed(cut(rest, ','));
      if (coding.empty() || boost::beast::iequals(coding, "identity")) continue;
      Fault fault{.status = 415, .code = "UNSUPPORTED_COMPRESSION"};
      fault.message = fmt::format("the Content-Encoding {} is not read here: bodies come unpacked",
                                  coding.substr(0, 64));
      fault.details = {{"field", "\"Content-Encoding\""}, {"supported_compression", "[]"}};
      fault.headers.emplace_back("Accept-Encoding", "identity");
      throw fault;
    }
  }
}

/// A request without a tenant sees all jobs: a header that came garbled must not count as none.
void admit_tenant(const Request& request) {
  std::size_t given = 0;
  for (const auto& [name, value] : request.headers) {
    if (name != "x-ojs-tenant") continue;
    if (value.empty() || ++given > 1)
      throw invalid_request("X-OJS-Tenant must name one tenant, once", "X-OJS-Tenant");
  }
}

/// Source: ojs-extension-lifecycle 8.3.
void admit_extensions(const Request& request) {
  for (const auto& [name, value] : request.headers) {
    if (name != "ojs-requires-extension") continue;
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view uri = trimmed(cut(rest, ','));
      if (uri.empty() || offers_extension(uri)) continue;
      Fault fault{.status = 422, .code = "EXTENSION_NOT_SUPPORTED"};
      fault.message = fmt::format("the extension {} is not offered here", uri.substr(0, 128));
      fault.members.emplace_back("extension", quoted(uri.substr(0, 128)));
      fault.hint = "GET /ojs/manifest names the extensions.";
      throw fault;
    }
  }
}

/// Without its parts `.` and `..`. Source: RFC 3986, 5.2.4.
std::string without_dots(std::string_view path) {
  std::vector<std::string_view> kept;
  for (const std::string_view part : parts_of(path))
    if (part == ".." && !kept.empty())
      kept.pop_back();
    else if (part != "." && part != "..")
      kept.push_back(part);
  return "/" + fmt::format("{}", fmt::join(kept, "/"));
}

}  // namespace

Router::Router(bool test_hooks) {
  for (const auto& routes :
       {enqueue_routes(),     bulk_routes(),       bulk_change_routes(),  job_routes(),
        progress_routes(),    worker_routes(),     roster_routes(),       queue_routes(),
        dead_letter_routes(), event_routes(),      limit_routes(),        health_routes(),
        schema_routes(),      cron_routes(),       workflow_routes(),     admin_queue_routes(),
        admin_job_routes(),   admin_pool_routes(), admin_tenant_routes(), admin_system_routes(),
        stats_routes(),       page_routes(),       test_routes()})
    for (const Route& route : routes)
      if (test_hooks || !route.test_hook) routes_.push_back(route);
  for (const Route& route : routes_) {
    if (route.path.find('{') == std::string_view::npos)
      exact_[route.path].push_back(&route);
    else
      patterns_.push_back({parts_of(route.path), &route});
  }
}

const Route& Router::find(Request& request) const {
  std::string allowed;
  const auto allow = [&](const Route& route) {
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method;
  };
  const auto fits = [&](const Route& route) {
    return route.method == request.method || (route.method == "GET" && request.method == "HEAD");
  };
  if (const auto found = exact_.find(request.path); found != exact_.end()) {
    for (const Route* route : found->second) {
      if (fits(*route)) return *route;
      allow(*route);
    }
  }
  const std::vector<std::string_view> parts = parts_of(request.path);
  for (const Pattern& pattern : patterns_) {
    const bool same = std::ranges::equal(pattern.parts, parts, [](auto wanted, auto given) {
      return is_name(wanted) ? !given.empty() : wanted == given;
    });
    if (!same) continue;
    allow(*pattern.route);
    if (!fits(*pattern.route)) continue;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (is_name(pattern.parts[i]))
        request.names.push_back(name_in(pattern.parts[i], decoded(parts[i], false)));
    return *pattern.route;
  }
  if (allowed.empty()) {
    Fault fault{.status = 404, .code = "not_found"};
    fault.message = fmt::format("there is no {}", request.path.substr(0, 256));
    fault.hint = "The endpoints stand in docs/gateway.md, and in GET /ojs/v1/openapi.json.";
    throw fault;
  }
  Fault fault{.status = 405, .code = "method_not_allowed"};
  fault.message = fmt::format("{} takes {}", request.path.substr(0, 256), allowed);
  fault.headers.emplace_back("Allow", allowed);
  throw fault;
}

void admit(const Request& request, const Route& route, const Tokens& tokens) {
  switch (tokens.judge(request.header("authorization"), route.scope)) {
    case Tokens::Verdict::kGranted: break;
    case Tokens::Verdict::kUnknown: {
      Fault fault{.status = 401, .code = "unauthorized"};
      fault.message = "this gateway asks for a bearer token that it knows";
      fault.headers.emplace_back("WWW-Authenticate", "Bearer");
      throw fault;
    }
    case Tokens::Verdict::kScopeMissing: {
      Fault fault{.status = 403, .code = "forbidden"};
      fault.message = fmt::format("the token does not have the scope {}", scope_name(route.scope));
      throw fault;
    }
  }
  const std::string_view version = request.header("ojs-version");
  if (!version.empty() && version != "1" && !version.starts_with("1."))
    throw unsupported(
        fmt::format("OJS-Version {} is not spoken here; 1.0 is", version.substr(0, 32)));
  admit_extensions(request);
  admit_tenant(request);
  if (request.body.empty()) return;
  admit_coding(request);
  std::string_view rest = request.header("content-type");
  const std::string_view type = trimmed(cut(rest, ';'));
  if (!boost::beast::iequals(type, kType) && !boost::beast::iequals(type, "application/json"))
    throw invalid_request(
        fmt::format("the body's Content-Type must be {} or application/json", kType),
        "Content-Type");
  // What takes no body is not disturbed by one, but it is to be JSON. Source: ojs-http-binding 6.1.
  if (route.bodies.takes.empty() && route.method != "GET" && route.method != "DELETE")
    (void)Body(request);
}

std::string_view negotiated_type(std::string_view accept) {
  bool json = false;
  while (!accept.empty()) {
    std::string_view range = cut(accept, ',');
    const std::string_view type = trimmed(cut(range, ';'));
    if (boost::beast::iequals(type, kType) || type == "*/*") return kType;
    json = json || boost::beast::iequals(type, "application/json");
  }
  return json ? "application/json" : kType;
}

bool takes_gzip(std::string_view accept_encoding) {
  bool others = false;
  while (!accept_encoding.empty()) {
    std::string_view parameters = cut(accept_encoding, ',');
    const std::string_view coding = trimmed(cut(parameters, ';'));
    if (boost::beast::iequals(coding, "gzip") || boost::beast::iequals(coding, "x-gzip"))
      return !refused(parameters);
    if (coding == "*") others = !refused(parameters);
  }
  return others;
}

void read_target(std::string_view target, Request& request) {
  target = target.substr(0, target.find('#'));
  // A proxy's form, "http://host/path". Source: RFC 9112, 3.2.2.
  for (const std::string_view scheme : {"http://", "https://"})
    if (target.starts_with(scheme)) {
      target.remove_prefix(scheme.size());
      target.remove_prefix(std::min(target.find('/'), target.size()));
      if (target.empty()) target = "/";
      break;
    }
  const std::string_view path = cut(target, '?');
  // Of what only looks: a change goes to the path that is written, or nowhere.
  const bool looks = request.method == "GET" || request.method == "HEAD";
  request.path =
      looks && path.find("/.") != std::string_view::npos ? without_dots(path) : std::string(path);
  if (request.path.size() > 1 && request.path.ends_with('/')) request.path.pop_back();
  while (!target.empty()) {
    std::string_view pair = cut(target, '&');
    const std::string name = decoded(cut(pair, '='), true);
    if (!name.empty()) request.query.try_emplace(name, decoded(pair, true));
  }
}

}  // namespace ojs_shm::gateway
