// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "worker_api/c_api/c_api_structs.hpp"

namespace ojs_shm::c_api {

static_assert(c_code(Code::kOk) == OJS_SHM_OK && c_code(Code::kInternal) == OJS_SHM_E_INTERNAL &&
                  c_code(Code::kInvalid) == OJS_SHM_E_INVALID &&
                  c_code(Code::kCannotAttach) == OJS_SHM_E_CANNOT_ATTACH &&
                  c_code(Code::kNotFound) == OJS_SHM_E_NOT_FOUND &&
                  c_code(Code::kWrongState) == OJS_SHM_E_WRONG_STATE &&
                  c_code(Code::kQueueFull) == OJS_SHM_E_QUEUE_FULL &&
                  c_code(Code::kSegmentFull) == OJS_SHM_E_NOMEM &&
                  c_code(Code::kPermission) == OJS_SHM_E_PERMISSION &&
                  c_code(Code::kInUse) == OJS_SHM_E_IN_USE &&
                  c_code(Code::kOtherFormat) == OJS_SHM_E_OTHER_FORMAT &&
                  c_code(Code::kDuplicate) == OJS_SHM_E_DUPLICATE &&
                  c_code(Code::kTooLarge) == OJS_SHM_E_TOO_LARGE &&
                  c_code(Code::kEmpty) == OJS_SHM_E_EMPTY &&
                  c_code(Code::kTimeout) == OJS_SHM_E_TIMEOUT &&
                  c_code(Code::kLost) == OJS_SHM_E_LOST &&
                  c_code(Code::kClosed) == OJS_SHM_E_CLOSED &&
                  c_code(Code::kNoSpace) == OJS_SHM_E_NO_SPACE &&
                  c_code(Code::kStaleVersion) == OJS_SHM_E_STALE_VERSION,
              "A C code is the C++ code with its sign turned.");

namespace {

const char* sentence(int code) {
  switch (code) {
    case OJS_SHM_OK: return "success";
    case OJS_SHM_E_INTERNAL:
      return "a bug of the library, or an operating-system call that should not fail";
    case OJS_SHM_E_INVALID: return "an argument is wrong";
    case OJS_SHM_E_CANNOT_ATTACH:
      return "there is no such segment, or it is not a readable one of this library";
    case OJS_SHM_E_NOT_FOUND: return "there is no job, queue or name like that";
    case OJS_SHM_E_WRONG_STATE: return "the job's state forbids it";
    case OJS_SHM_E_QUEUE_FULL: return "the queue's bound refused the job";
    case OJS_SHM_E_NOMEM: return "a pool of the segment is exhausted";
    case OJS_SHM_E_PERMISSION: return "the operating system refused access to the segment";
    case OJS_SHM_E_IN_USE: return "another process has that name, role or file";
    case OJS_SHM_E_OTHER_FORMAT:
      return "the segment has another format, layout or priority convention";
    case OJS_SHM_E_DUPLICATE: return "a job with that id exists";
    case OJS_SHM_E_TOO_LARGE:
      return "the body, result or name is longer than the segment's maximum";
    case OJS_SHM_E_EMPTY: return "there is nothing to fetch, or the job handle holds none";
    case OJS_SHM_E_TIMEOUT: return "the given time passed";
    case OJS_SHM_E_LOST: return "the job is no longer held by the caller";
    case OJS_SHM_E_CLOSED: return "the handle was interrupted, or belongs to the parent of a fork";
    case OJS_SHM_E_NO_SPACE: return "the file system cannot hold the segment";
    case OJS_SHM_E_STALE_VERSION: return "the library is older or newer than the caller's header";
    default: return "not a code of this library";
  }
}

/// The record that answers for a handle, or nullptr when it is none.
Record* record_of(const void* handle) {
  if (handle == nullptr) return &thread_record();
  const auto* any = static_cast<const Handle*>(handle);
  switch (any->kind) {
    case Kind::kSegment: return &thread_record();
    case Kind::kProducer:
    case Kind::kWorker:
    case Kind::kJob:
    case Kind::kAdmin:
    case Kind::kObserver:
    case Kind::kEvents:
    case Kind::kWaiting:
    case Kind::kPrepared:
    case Kind::kProxy: return &any->record;
    case Kind::kClosed: break;
  }
  return nullptr;
}

template <class H>
int end(void* handle) {
  auto* ending = static_cast<H*>(handle);
  // Volatile, so that the word is really cleared before its memory goes back: closing twice is then
  // mostly seen.
  *const_cast<volatile Kind*>(&ending->kind) = Kind::kClosed;
  delete ending;
  return OJS_SHM_OK;
}

}  // namespace

Record& thread_record() {
  thread_local Record record;
  return record;
}

int Record::fail(Error happened) noexcept {
  error = std::move(happened);
  try {
    unit.assign(error.unit);
  } catch (...) {
    unit.clear();
  }
  return c_code(error.code);
}

int Record::fail_internally(const char* what) noexcept {
  Error happened;
  try {
    happened.message = what;
  } catch (...) {  // then ojs_shm_strerror's sentence has to do
  }
  return fail(std::move(happened));
}

int failed(Record& record) noexcept {
  try {
    throw;
  } catch (WrongArgument& wrong) {
    return record.fail(std::move(wrong.error));
  } catch (const std::bad_alloc&) {
    return record.fail_internally("no heap memory");
  } catch (const std::exception& unexpected) {
    return record.fail_internally(unexpected.what());
  } catch (...) {
    return record.fail_internally("an unknown exception");
  }
}

std::int64_t Record::give(std::string made, char* buffer, std::size_t size) {
  check_buffer(buffer, size);
  text = std::move(made);
  return copy_out(text, buffer, size);
}

std::int64_t copy_out(std::string_view text, char* buffer, std::size_t size) noexcept {
  if (buffer != nullptr && size > 0) {
    const std::size_t fits = std::min(text.size(), size - 1);
    std::memcpy(buffer, text.data(), fits);
    buffer[fits] = '\0';
  }
  return static_cast<std::int64_t>(text.size());
}

void wrong_argument(std::string subject, std::string message) {
  message = subject + " " + message;
  throw WrongArgument{Error{Code::kInvalid, std::move(message)}.about(std::move(subject))};
}

void missing_argument(const char* name) { wrong_argument(name, "must not be NULL"); }
void check_buffer(const char* buffer, std::size_t size) {
  if (buffer == nullptr && size != 0)
    wrong_argument("buffer", "must not be NULL when size is not 0");
}
void wrong_handle_argument(std::string_view kind) {
  wrong_argument(std::string(kind), "is NULL, closed or a handle of another kind");
}
void wrong_size(const char* name) {
  wrong_argument(std::string(name) + ".struct_size",
                 "is not the size of this struct; set it to its sizeof");
}

std::vector<std::string> names_of(const char* const* names, std::size_t count, const char* name) {
  std::vector<std::string> read;
  if (count != 0) out(names, name);
  for (std::size_t i = 0; i < count; ++i) read.emplace_back(text(names[i], name));
  return read;
}

std::string_view any_json_text(std::string_view given, const char* name) {
  if (const Status checked = json::check(given); !checked)
    wrong_argument(name, "is " + checked.error().message);
  return json::trim(given);
}

std::string_view json_text(std::string_view given, json::Kind kind, const char* name) {
  if (kind == json::Kind::kArray && given.starts_with('[') && given.ends_with(']') &&
      json::plainly_json(given)) [[likely]]
    return given;
  if (given.empty()) wrong_argument(name, "must not be empty");
  const std::string_view text = any_json_text(given, name);
  if (json::kind_of(text) != kind) {
    wrong_argument(name,
                   kind == json::Kind::kArray ? "must be a JSON array" : "must be a JSON object");
  }
  return text;
}

void newer_caller(const char* name) {
  throw WrongArgument{
      Error{Code::kStaleVersion, std::string(name) + " sets something that library " +
                                     std::string(library_version()) + " does not know"}
          .about(name)};
}

int wrong_handle(const void* handle, std::string_view wanted) noexcept {
  return entry([&](Record&) -> int {
    wrong_argument(std::string(wanted),
                   handle == nullptr ? "must not be NULL" : "is closed or of another kind");
  });
}

}  // namespace ojs_shm::c_api

using namespace ojs_shm::c_api;

extern "C" {

const char* ojs_shm_strerror(int code) { return sentence(code); }

const char* ojs_shm_code_name(int code) {
  if (code > OJS_SHM_OK || code < OJS_SHM_E_STALE_VERSION) return "unknown";
  // literals, so a NUL follows
  return ojs_shm::code_name(static_cast<ojs_shm::Code>(-code)).data();
}

const char* ojs_shm_last_error(const void* handle) {
  const Record* record = record_of(handle);
  if (record == nullptr) return "the handle is closed or none of this library";
  return record->error.message.empty() ? sentence(c_code(record->error.code))
                                       : record->error.message.c_str();
}

int ojs_shm_last_error_detail(const void* handle, ojs_shm_error* error) {
  return entry([&](Record&) -> int {
    const Record* record = record_of(handle);
    if (record == nullptr) wrong_argument("handle", "is closed or none of this library");
    ojs_shm_error detail{};
    detail.message = ojs_shm_last_error(handle);
    detail.subject = record->error.subject.c_str();
    detail.unit = record->unit.c_str();
    detail.depth = record->error.depth;
    detail.bound = record->error.bound;
    // a literal: a NUL follows
    detail.strategy = record->error.strategy.empty() ? "" : record->error.strategy.data();
    detail.retry_after_ms = record->error.retry_after_ms;
    detail.state = record->error.state.data();
    detail.tenant = record->error.tenant ? record->error.tenant->c_str() : nullptr;
    detail.code = c_code(record->error.code);
    write_struct(error, detail, "error");
    return OJS_SHM_OK;
  });
}

int64_t ojs_shm_last_text(const void* handle, char* buffer, size_t size) {
  return entry([&](Record&) -> int64_t {
    const Record* record = record_of(handle);
    if (record == nullptr) wrong_argument("handle", "is closed or none of this library");
    check_buffer(buffer, size);
    return copy_out(record->text, buffer, size);
  });
}

int ojs_shm_close(void* handle) {
  return entry([&](Record&) -> int {
    if (handle == nullptr) return OJS_SHM_OK;
    switch (static_cast<Handle*>(handle)->kind) {
      case Kind::kSegment: return end<ojs_shm_segment>(handle);
      case Kind::kProducer: return end<ojs_shm_producer>(handle);
      case Kind::kWorker: return end<ojs_shm_worker>(handle);
      case Kind::kJob: return end<ojs_shm_job>(handle);
      case Kind::kAdmin: return end<ojs_shm_admin>(handle);
      case Kind::kObserver: return end<ojs_shm_observer>(handle);
      case Kind::kEvents: return end<ojs_shm_events>(handle);
      case Kind::kPrepared: return end<ojs_shm_prepared>(handle);
      case Kind::kWaiting: return end<ojs_shm_waiting>(handle);
      case Kind::kProxy: return end<ojs_shm_proxy>(handle);
      case Kind::kClosed: break;
    }
    wrong_argument("handle", "is closed or none of this library");
  });
}

const char* ojs_shm_version(void) {
  return ojs_shm::library_version().data();
}  // a literal, so a NUL follows

uint32_t ojs_shm_format(void) { return ojs_shm::segment_format(); }

int ojs_shm_check_abi(uint32_t abi_version) {
  return entry([&](Record& record) -> int {
    if (abi_version == OJS_SHM_ABI_VERSION) return OJS_SHM_OK;
    return record.fail(ojs_shm::Error{ojs_shm::Code::kStaleVersion,
                                      "the caller was built for version " +
                                          std::to_string(abi_version) + " of the C ABI, library " +
                                          ojs_shm_version() + " has version " +
                                          std::to_string(OJS_SHM_ABI_VERSION)}
                           .about("abi_version")
                           .at_most(OJS_SHM_ABI_VERSION));
  });
}

}  // extern "C"
