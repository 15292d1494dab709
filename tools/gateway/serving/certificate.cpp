// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/serving/certificate.hpp"

#include <openssl/asn1.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>

#include <boost/asio/buffer.hpp>
#include <ctime>

#include "tools/shell/refusal.hpp"
#include "tools/shell/text_file.hpp"

namespace ojs_shm::gateway {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

namespace {

/// Up to TLS 1.2 the server chooses among these: forward secrecy, and sealing in one step. All
/// suites of TLS 1.3 have both.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

[[noreturn]] void refuse_file(const std::string& what) { shell::refuse(Code::kInvalid, what); }

std::shared_ptr<ssl::context> new_context() {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const raw = context->native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(raw, kCiphers);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Clients that come back bring a ticket; nothing is kept for them here.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  // An idle connection holds no buffers.
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  return context;
}

/// Says until when it is valid, and warns when that is over.
void log_validity(const std::string& path, SSL_CTX* context) {
  const ASN1_TIME* const end = X509_get0_notAfter(SSL_CTX_get0_certificate(context));
  std::tm when{};
  if (ASN1_TIME_to_tm(end, &when) != 1) return;
  std::string day(11, '\0');
  day.resize(std::strftime(day.data(), day.size(), "%Y-%m-%d", &when));
  if (X509_cmp_current_time(end) < 0)
    spdlog::warn("the certificate in {} ended on {}: clients will refuse it", path, day);
  else
    spdlog::info("TLS with the certificate in {}, which is valid until {}", path, day);
}

}  // namespace

Certificate::Certificate(std::string certificate_file, std::string key_file)
    : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {
  if (certificate_file_.empty() != key_file_.empty())
    shell::refuse(Code::kInvalid,
                  fmt::format("{} needs {} too: TLS takes a certificate and its key",
                              key_file_.empty() ? "--tls-certificate" : "--tls-key",
                              key_file_.empty() ? "--tls-key" : "--tls-certificate"));
  if (given()) read();
}

void Certificate::read() {
  const std::string certificates = shell::must(shell::read_text_file(certificate_file_));
  const std::string key = shell::must(shell::read_text_file(key_file_));
  const auto context = new_context();
  error_code failed;
  context->use_certificate_chain(boost::asio::buffer(certificates), failed);
  if (failed)
    refuse_file(
        fmt::format("{} has no certificate that can be used ({}); it must hold one in PEM "
                    "form, and those of its issuers behind it",
                    certificate_file_, failed.message()));
  // Without it OpenSSL would ask for a pass phrase on the terminal.
  bool locked = false;
  context->set_password_callback([&locked](std::size_t, ssl::context::password_purpose) {
    locked = true;
    return std::string();
  });
  context->use_private_key(boost::asio::buffer(key), ssl::context::pem, failed);
  if (locked)
    refuse_file(
        fmt::format("{} is locked with a pass phrase; give a key without one, in a file "
                    "that this program alone may read",
                    key_file_));
  // A key that could be read, but is another one's, is told apart by the reason.
  const bool foreign = failed && ERR_GET_REASON(static_cast<unsigned long>(failed.value())) ==
                                     X509_R_KEY_VALUES_MISMATCH;
  if (failed && !foreign)
    refuse_file(
        fmt::format("{} has no key that can be used ({}); it must hold a private key in PEM form",
                    key_file_, failed.message()));
  if (foreign || SSL_CTX_check_private_key(context->native_handle()) != 1)
    refuse_file(fmt::format("the key in {} does not belong to the certificate in {}", key_file_,
                            certificate_file_));
  log_validity(certificate_file_, context->native_handle());
  const std::lock_guard lock(mutex_);
  context_ = context;
}

std::shared_ptr<ssl::context> Certificate::context() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

}  // namespace ojs_shm::gateway
