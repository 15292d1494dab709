// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ojs_shm/result.hpp>

#include "tools/gateway/routes/exchange.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm::gateway {

/// Why a request is refused. Thrown by handlers, so that each of their steps is one line; the
/// router turns it into a reply.
struct Fault {
  unsigned status = 400;
  std::string code = {}, message = {};
  bool retryable = false;
  std::string type = {};                                          ///< empty: the code
  std::vector<std::pair<std::string, std::string>> details = {};  ///< name and JSON
  std::vector<std::pair<std::string, std::string>> members = {};  ///< of the error itself, as JSON
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string hint = {};
};

/// What the client sent is wrong; `field` is the member.
Fault invalid_request(std::string message, std::string_view field = {});
/// The text cannot be read as a duration: it has years or months, or is not what is `expected`.
Fault no_duration(std::string_view field, TimeFault why, std::string_view expected);
Fault not_found(std::string_view resource, std::string_view id);
/// The same in the words of an error: the id is none, or what had it is gone.
Fault not_found(std::string_view resource, std::string_view id, const Error& why);
Fault unsupported(std::string message);
/// Refuses what is told of all tenants' jobs together to a request of one; `what` begins the
/// message.
void refuse_tenant(const Request& request, std::string_view what);
/// The table of docs/gateway.md. `job` is the id that the request was about, if it was about one.
Fault fault_of(const Error& error, std::string_view job = {});
Reply reply_of(const Fault& fault, const Request& request);
/// The error as an object, for what became of one of many.
std::string error_text(const Fault& fault);

template <class T>
T must(Result<T> result, std::string_view job = {}) {
  if (!result) throw fault_of(result.error(), job);
  return std::move(result).value();
}
inline void must(const Status& status, std::string_view job = {}) {
  if (!status) throw fault_of(status.error(), job);
}

/// A conflict of a change that only jobs in these states take says so.
Fault in_wrong_state(const Error& error, std::string_view job, std::string_view expected);

/// For such a change.
template <class T>
T must_from(std::string_view expected, Result<T> result, std::string_view job) {
  if (!result) throw in_wrong_state(result.error(), job, expected);
  return std::move(result).value();
}
inline void must_from(std::string_view expected, const Status& status, std::string_view job) {
  if (!status) throw in_wrong_state(status.error(), job, expected);
}

}  // namespace ojs_shm::gateway
