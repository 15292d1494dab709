// SPDX-License-Identifier: Apache-2.0
//
// The dashboard: files of this program, which ask for nothing but this gateway.
#include "tools/gateway/page/page_files.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/routes/router.hpp"

namespace ojs_shm::gateway {
namespace {

/// Scripts and styles come from files of this gateway alone, texts never become elements, and no
/// other page may show this one inside itself.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

constexpr std::pair<std::string_view, std::string_view> kHeaders[] = {
    {"Vary", "Accept-Encoding"},
    {"Content-Security-Policy", kPolicy},
    {"Cache-Control", "no-cache"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

Reply file(const Request& request, std::string_view name, std::string_view type) {
  for (const PageFile& each : page_files()) {
    if (each.name != name) continue;
    const bool packed = takes_gzip(request.header("accept-encoding"));
    Reply reply{.body = std::string(packed ? each.gzip : each.text),
                .content_type = std::string(type)};
    if (packed) reply.headers.emplace_back("Content-Encoding", "gzip");
    for (const auto& [header, value] : kHeaders) reply.headers.emplace_back(header, value);
    return reply;
  }
  throw not_found("file", name);
}

Reply page(Desk&, const Request& request) {
  return file(request, "index.html", "text/html; charset=utf-8");
}
Reply script(Desk&, const Request& request) {
  return file(request, "dashboard.js", "text/javascript; charset=utf-8");
}
Reply style(Desk&, const Request& request) {
  return file(request, "dashboard.css", "text/css; charset=utf-8");
}
Reply icon(Desk&, const Request& request) { return file(request, "icon.svg", "image/svg+xml"); }
Reply licences(Desk&, const Request& request) {
  return file(request, "licences.txt", "text/plain; charset=utf-8");
}

}  // namespace

std::span<const Route> page_routes() {
  static const Route kRoutes[] = {
      {"GET", "/", Scope::kNone, &page, {}, Pace::kQuick, false, true},
      {"GET", "/dashboard.js", Scope::kNone, &script, {}, Pace::kQuick, false, true},
      {"GET", "/dashboard.css", Scope::kNone, &style, {}, Pace::kQuick, false, true},
      {"GET", "/icon.svg", Scope::kNone, &icon, {}, Pace::kQuick, false, true},
      {"GET", "/licences.txt", Scope::kNone, &licences, {}, Pace::kQuick, false, true},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
