// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <mutex>
#include <string>

namespace ojs_shm::gateway {

/// The certificate that the gateway shows to clients over TLS, and its key; or none, and then
/// connections are plain. Thread-safe.
class Certificate {
 public:
  /// Both paths are empty, or both name PEM files, which are read now. Throws shell::Refusal.
  Certificate(std::string certificate_file, std::string key_file);

  bool given() const { return !certificate_file_.empty(); }
  /// Throws shell::Refusal, which names the file; connections to come go on with what was read
  /// before.
  void read();
  /// For a new connection; null without a certificate.
  std::shared_ptr<boost::asio::ssl::context> context() const;

 private:
  std::string certificate_file_, key_file_;
  mutable std::mutex mutex_;
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace ojs_shm::gateway
