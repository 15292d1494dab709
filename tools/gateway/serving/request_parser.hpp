// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <string>

#include "tools/gateway/routes/exchange.hpp"

namespace ojs_shm::gateway {

/// Reads one request into what handlers see of it, and keeps nothing else of its header: Beast's
/// own parser makes a list of all fields first.
class RequestParser final : public boost::beast::http::basic_parser<true> {
 public:
  RequestParser() { eager(true); }

  /// Without path and query, which stand in target().
  Request& request() { return request_; }
  const std::string& target() const { return target_; }
  /// How long the client says that the body is; 0: it has not said so. Also of a body that is
  /// refused.
  std::uint64_t announced_bytes() const { return announced_bytes_; }
  /// Of HTTP: 10 or 11.
  int http_version() const { return http_version_; }
  /// The client sends the body when it is told to go on.
  bool expects_continue() const { return expects_continue_; }

 private:
  using Field = boost::beast::http::field;
  using Failure = boost::beast::error_code;
  using Text = boost::beast::string_view;

  void on_request_impl(boost::beast::http::verb method, Text method_text, Text target, int version,
                       Failure& failed) override;
  void on_field_impl(Field field, Text name, Text value, Failure& failed) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, Failure& failed) override;
  std::size_t on_body_impl(Text piece, Failure& failed) override;
  std::size_t on_chunk_body_impl(std::uint64_t left, Text piece, Failure& failed) override;
  void on_header_impl(Failure&) override;
  void on_chunk_header_impl(std::uint64_t, Text, Failure&) override {}
  void on_finish_impl(Failure&) override {}
  void on_response_impl(int, Text, int, Failure&) override {}

  Request request_;
  std::string target_;
  std::uint64_t announced_bytes_ = 0;
  int http_version_ = 11;
  bool expects_continue_ = false, in_pieces_ = false;
};

}  // namespace ojs_shm::gateway
