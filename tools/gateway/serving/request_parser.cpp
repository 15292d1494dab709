// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/serving/request_parser.hpp"

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>
#include <charconv>
#include <iterator>
#include <utility>

namespace ojs_shm::gateway {

namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

constexpr std::size_t kLongestId = 128;
constexpr std::size_t kUsualHeaders = 7;

/// Only these matter to a handler, and X-Request-ID.
constexpr std::pair<http::field, std::string_view> kHeaders[] = {
    {http::field::authorization, "authorization"},
    {http::field::content_type, "content-type"},
    {http::field::content_encoding, "content-encoding"},
    {http::field::accept, "accept"},
    {http::field::accept_encoding, "accept-encoding"},
    {http::field::host, "host"},
    {http::field::origin, "origin"},
    {http::field::upgrade, "upgrade"},
    {http::field::sec_websocket_key, "sec-websocket-key"},
    {http::field::sec_websocket_version, "sec-websocket-version"},
    {http::field::sec_websocket_protocol, "sec-websocket-protocol"},
};
constexpr std::string_view kTenantHeader = "x-ojs-tenant";
constexpr std::string_view kOwnHeaders[] = {"ojs-version",       kTenantHeader,
                                            "ojs-block-timeout", "last-event-id",
                                            "idempotency-key",   "ojs-requires-extension"};

std::string_view name_for_handlers(http::field field, beast::string_view name) {
  for (const auto& [known, text] : kHeaders)
    if (field == known) return text;
  if (field != http::field::unknown) return {};
  for (const std::string_view own : kOwnHeaders)
    if (beast::iequals(name, {own.data(), own.size()})) return own;
  return {};
}

}  // namespace

void RequestParser::on_request_impl(http::verb, Text method_text, Text target, int version,
                                    Failure&) {
  http_version_ = version;
  request_.method.assign(method_text.data(), method_text.size());
  target_.assign(target.data(), target.size());
  request_.headers.reserve(kUsualHeaders);
}

void RequestParser::on_field_impl(Field field, Text name, Text value, Failure& failed) {
  if (is_header_done()) return;  // behind the body
  if (field == http::field::transfer_encoding) {
    // Beast takes the body of any other coding for the next request. Source: RFC 9112, 6.1.
    if (in_pieces_ || !beast::iequals(value, "chunked"))
      failed = http::error::bad_transfer_encoding;
    in_pieces_ = true;
    return;
  }
  const std::string_view known = name_for_handlers(field, name);
  if (value.empty() && known != kTenantHeader) return;  // an empty tenant is refused, not left out
  if (!known.empty())
    request_.headers.emplace_back(known, std::string(value));
  else if (field == http::field::content_length)
    std::from_chars(value.data(), value.data() + value.size(), announced_bytes_);
  else if (field == http::field::expect)
    expects_continue_ = expects_continue_ || beast::iequals(value, "100-continue");
  else if (request_.id.empty() && value.size() <= kLongestId &&
           beast::iequals(name, "X-Request-ID"))
    request_.id.assign(value.data(), value.size());
}

/// Of what Connection says, only this is of the request and not of the connection. HTTP/1.0 has no
/// Upgrade. Source: RFC 9110, 7.8.
void RequestParser::on_header_impl(Failure&) {
  if (upgrade() && http_version_ >= 11) request_.headers.emplace_back("connection", "upgrade");
}

void RequestParser::on_body_init_impl(const boost::optional<std::uint64_t>& length, Failure&) {
  if (length) request_.body.reserve(*length);  // not above the limit, which was looked at
}

std::size_t RequestParser::on_body_impl(Text piece, Failure&) {
  request_.body.append(piece.data(), piece.size());
  return piece.size();
}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t, Text piece, Failure& failed) {
  return on_body_impl(piece, failed);
}

}  // namespace ojs_shm::gateway
