// SPDX-License-Identifier: Apache-2.0
#pragma once

// What all entries of the C ABI share: handles, the record of a failure, and the door that lets no
// exception out.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <ojs_shm/ojs_shm.h>
#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/proxy.hpp>
#include <ojs_shm/resilience.hpp>
#include <ojs_shm/result.hpp>
#include <ojs_shm/segment.hpp>
#include <ojs_shm/worker.hpp>

namespace ojs_shm::c_api {

/// The first word of every handle, so that a wrong one is seen. A closed handle's word is cleared.
enum class Kind : std::uint32_t {
  kClosed = 0,
  kSegment = 0x6f6a7331,
  kProducer = 0x6f6a7332,
  kWorker = 0x6f6a7333,
  kJob = 0x6f6a7334,
  kAdmin = 0x6f6a7335,
  kObserver = 0x6f6a7336,
  kEvents = 0x6f6a7337,
  kWaiting = 0x6f6a7338,
  kProxy = 0x6f6a7339,
  kPrepared = 0x6f6a733a,
};

constexpr int c_code(Code code) { return -static_cast<int>(code); }

/// What a handle, or a thread, remembers for its caller: the last failure and the last text.
struct Record {
  Error error{Code::kOk};
  std::string unit;  ///< error.unit with a NUL behind it
  std::string text;

  /// Remembers the error and returns its code for C.
  int fail(Error happened) noexcept;
  int fail_internally(const char* what) noexcept;
  int done(const Status& status) { return status.ok() ? OJS_SHM_OK : fail(status.error()); }
  /// Remembers a text, copies what fits and returns its length (convention 4).
  std::int64_t give(std::string made, char* buffer, std::size_t size);
};

/// The record of what happens in this thread without a handle that could keep it.
Record& thread_record();

/// Convention 4 for a text that another object keeps.
std::int64_t copy_out(std::string_view text, char* buffer, std::size_t size) noexcept;

struct Handle {
  explicit Handle(Kind of) : kind(of) {}
  Kind kind;
  mutable Record record;
};

/// A handle of that kind around an object of the C++ API.
template <Kind kOf, class Object>
struct Around : Handle {
  static constexpr Kind kKind = kOf;
  explicit Around(Object made) : Handle(kOf), object(std::move(made)) {}
  Object object;
};

/// A wrong argument, on its way from a reader below to the door.
struct WrongArgument {
  Error error;
};
[[noreturn]] void wrong_argument(std::string subject, std::string message);
/// A NULL, and a handle that is none of that kind; apart, so that the readers are inlined.
[[noreturn]] void missing_argument(const char* name);
[[noreturn]] void wrong_handle_argument(std::string_view kind);

/// Remembers the exception that is being handled and returns its code for C.
int failed(Record& record) noexcept;

/// Runs the body and turns whatever it throws into a code.
template <class Body>
[[gnu::always_inline]] inline auto guarded(Record& record, const Body& body) noexcept
    -> decltype(body(record)) {
  try {
    return body(record);
  } catch (...) {
    return failed(record);
  }
}

template <class H>
bool is_open(const H* handle) {
  return handle != nullptr && handle->kind == H::kKind;
}

int wrong_handle(const void* handle, std::string_view wanted) noexcept;

/// The door of every entry that works on one handle; failures are remembered in it.
template <class H, class Body>
[[gnu::always_inline]] inline auto entry(H* handle, const Body& body) noexcept
    -> decltype(body(std::declval<Record&>())) {
  if (!is_open(handle)) return wrong_handle(handle, H::kName);
  return guarded(handle->record, body);
}

/// The door of every entry that makes a handle or needs none; failures are remembered for the
/// thread.
template <class Body>
auto entry(const Body& body) noexcept -> decltype(body(std::declval<Record&>())) {
  return guarded(thread_record(), body);
}

/// The C++ object behind a handle that was given as an argument.
template <class H>
H& opened(H* handle) {
  if (!is_open(handle)) wrong_handle_argument(H::kName);
  return *handle;
}

/// Refuses a NULL that shall have room for a text. An entry that does more than look calls it
/// first.
void check_buffer(const char* buffer, std::size_t size);

/// Refuses a NULL where the result would be written.
template <class T>
T& out(T* place, const char* name) {
  if (place == nullptr) missing_argument(name);
  return *place;
}

}  // namespace ojs_shm::c_api

struct ojs_shm_segment : ojs_shm::c_api::Around<ojs_shm::c_api::Kind::kSegment, ojs_shm::Segment> {
  static constexpr std::string_view kName = "segment";
  using Around::Around;
};

struct ojs_shm_producer : ojs_shm::c_api::Handle {
  static constexpr auto kKind = ojs_shm::c_api::Kind::kProducer;
  static constexpr std::string_view kName = "producer";
  explicit ojs_shm_producer(ojs_shm::Producer made)
      : Handle(kKind), resilient(std::move(made), {}), object(resilient.producer()) {}
  ojs_shm_producer(ojs_shm::Producer made, ojs_shm::ResilienceOptions given)
      : Handle(kKind),
        resilient(std::move(made), std::move(given)),
        object(resilient.producer()),
        options(true) {}
  ojs_shm::ResilientProducer resilient;
  ojs_shm::Producer& object;
  bool options = false;  ///< refusals are dealt with by `resilient`
};

struct ojs_shm_worker : ojs_shm::c_api::Around<ojs_shm::c_api::Kind::kWorker, ojs_shm::Worker> {
  static constexpr std::string_view kName = "worker";
  using Around::Around;
};

struct ojs_shm_job : ojs_shm::c_api::Handle {
  static constexpr auto kKind = ojs_shm::c_api::Kind::kJob;
  static constexpr std::string_view kName = "job";
  ojs_shm_job() : Handle(kKind) {}
  ojs_shm::Job object;
};

struct ojs_shm_admin : ojs_shm::c_api::Around<ojs_shm::c_api::Kind::kAdmin, ojs_shm::Admin> {
  static constexpr std::string_view kName = "admin";
  using Around::Around;
};

struct ojs_shm_observer
    : ojs_shm::c_api::Around<ojs_shm::c_api::Kind::kObserver, ojs_shm::Observer> {
  static constexpr std::string_view kName = "observer";
  using Around::Around;
};

struct ojs_shm_events
    : ojs_shm::c_api::Around<ojs_shm::c_api::Kind::kEvents, ojs_shm::EventReader> {
  static constexpr std::string_view kName = "events";
  using Around::Around;
};

struct ojs_shm_prepared
    : ojs_shm::c_api::Around<ojs_shm::c_api::Kind::kPrepared, ojs_shm::PreparedJob> {
  static constexpr std::string_view kName = "prepared";
  using Around::Around;
};

struct ojs_shm_waiting
    : ojs_shm::c_api::Around<ojs_shm::c_api::Kind::kWaiting, ojs_shm::WaitingEnqueue> {
  static constexpr std::string_view kName = "waiting";
  using Around::Around;
};

struct ojs_shm_proxy : ojs_shm::c_api::Around<ojs_shm::c_api::Kind::kProxy, ojs_shm::Proxy> {
  static constexpr std::string_view kName = "proxy";
  using Around::Around;
};
