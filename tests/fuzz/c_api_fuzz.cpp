// SPDX-License-Identifier: Apache-2.0
// A caller of the C ABI with structs of every size, flags and texts of every kind, and buffers that
// are too small. Each struct lies in memory of exactly the size that it claims, so that a step
// outside is seen.
//
// Input: steps, each an entry and its arguments.
#include <ojs_shm/ojs_shm.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/fuzz/input.hpp"
#include "tests/fuzz/lived_in.hpp"
#include "tests/fuzz/surroundings.hpp"
#include "worker_api/c_api/c_api_handle.hpp"
#include "worker_api/json/envelope_json.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm::fuzz {
namespace {

/// A struct in the caller's size, with zeros or noise where this library knows no member.
template <class T>
class Sized {
 public:
  Sized(Input& input, T filled) {
    const unsigned choice = input.byte();
    std::size_t size = sizeof(T);
    if (choice % 4 == 0) size = 8 + input.below(300);
    memory_.resize(size, choice % 8 == 4 ? 1 : 0);
    filled.struct_size = size;
    std::memcpy(memory_.data(), &filled, std::min(size, sizeof filled));
    if (choice == 0) {  // smaller than what lies there
      const std::size_t claimed = input.below(size);
      std::memcpy(memory_.data(), &claimed, sizeof claimed);
    }
    // A vector may own more than its size: it is copied to where it does not.
    exact_.reset(new (std::align_val_t{16}) unsigned char[size]);
    std::memcpy(exact_.get(), memory_.data(), size);
  }
  T* get() const { return reinterpret_cast<T*>(exact_.get()); }

 private:
  struct Free {
    void operator()(unsigned char* bytes) const {
      ::operator delete[](bytes, std::align_val_t{16});
    }
  };
  std::vector<unsigned char> memory_;
  std::unique_ptr<unsigned char[], Free> exact_;
};

/// A buffer of the input's size for convention 4.
class Buffer {
 public:
  explicit Buffer(Input& input)
      : size_(input.below(2) == 0 ? 0 : input.below(600)), bytes_(new char[size_]) {}
  char* data() const { return size_ == 0 ? nullptr : bytes_.get(); }
  std::size_t size() const { return size_; }

  /// What an entry returned: a code, or the length of a text that is JSON.
  void judge(const void* handle, std::int64_t length) const {
    if (length < 0) return;
    if (size_ != 0)
      require(std::strlen(data()) == std::min(static_cast<std::size_t>(length), size_ - 1),
              "cut elsewhere");
    std::string whole(static_cast<std::size_t>(length) + 1, '\0');
    require(ojs_shm_last_text(handle, whole.data(), whole.size()) == length,
            "another length the second time");
    whole.pop_back();
    require(json::check(whole).ok(), "no JSON");
  }

 private:
  std::size_t size_;
  std::unique_ptr<char[]> bytes_;
};

void judge(const void* handle, std::int64_t code) {
  if (code >= 0) return;
  require(code >= OJS_SHM_E_STALE_VERSION, "a code of no name");
  require(ojs_shm_last_error(handle) != nullptr && *ojs_shm_last_error(handle) != '\0',
          "a failure without a word");
}

class Caller {
 public:
  explicit Caller(const std::shared_ptr<internal::Attachment>& attachment)
      : segment_(std::make_unique<ojs_shm_segment>(Segment::of(attachment))) {
    require(ojs_shm_producer_open(segment_.get(), &producer_) == OJS_SHM_OK, "no producer");
    require(ojs_shm_admin_open(segment_.get(), &admin_) == OJS_SHM_OK, "no admin");
    require(ojs_shm_observer_open(segment_.get(), &observer_) == OJS_SHM_OK, "no observer");
    require(ojs_shm_worker_open(segment_.get(), nullptr, &worker_) == OJS_SHM_OK, "no worker");
    for (ojs_shm_job*& job : jobs_) require(ojs_shm_job_new(&job) == OJS_SHM_OK, "no job");
  }
  ~Caller() {
    for (ojs_shm_job* job : jobs_) ojs_shm_close(job);
    for (void* handle : {static_cast<void*>(worker_), static_cast<void*>(observer_),
                         static_cast<void*>(admin_), static_cast<void*>(producer_)})
      require(ojs_shm_close(handle) == OJS_SHM_OK, "an open handle was not one");
  }
  Caller(const Caller&) = delete;

  void call(Input& input) {
    texts_.clear();
    switch (input.below(20)) {
      case 0:
      case 1: return enqueue(input);
      case 2: return enqueue_batch(input);
      case 3:
      case 4: return fetch(input);
      case 5: return ack(input);
      case 6: return nack(input);
      case 7: return read_job(input);
      case 8: return open_worker(input);
      case 9: return list(input);
      case 10: return set_queue(input);
      case 11: return say(input, ojs_shm_get);
      case 12: return say(input, ojs_shm_cancel);
      case 13: return look(input, ojs_shm_stats);
      case 14: return look(input, ojs_shm_queues);
      case 15: return look(input, ojs_shm_audit);
      case 16: return last_error(input);
      case 17: return priorities(input);
      case 18: return settle(input);
      default: return wrong_handles(input);
    }
  }

 private:
  /// NULL or a text, which lives until the next call.
  const char* text(Input& input, const char* good) {
    const unsigned choice = input.byte();
    if (choice % 8 < 5) return good;
    if (choice % 8 == 5) return nullptr;
    const std::string_view taken = input.bytes(input.byte());
    return texts_.emplace_back(new std::string(taken.substr(0, taken.find('\0'))))->c_str();
  }
  /// One with a size. It has a NUL as well, for the struct may be cut between the two.
  const char* long_text(Input& input, const char* good, std::size_t& size) {
    size = 0;
    const unsigned choice = input.byte();
    if (choice % 4 != 3) return text(input, good);
    const std::string_view taken = input.bytes(input.byte());
    size = taken.size();
    if (size == 0) return nullptr;
    exact_.emplace_back(new char[size + 1]());
    std::memcpy(exact_.back().get(), taken.data(), size);
    return exact_.back().get();
  }
  ojs_shm_job* job(Input& input) { return jobs_[input.below(std::size(jobs_))]; }

  ojs_shm_job_spec spec(Input& input) {
    ojs_shm_job_spec filled{};
    filled.type = text(input, "fuzz.job");
    filled.args = long_text(input, "[1]", filled.args_size);
    filled.queue = text(input, nullptr);
    filled.id = text(input, nullptr);
    filled.extra = long_text(input, nullptr, filled.extra_size);
    filled.flags = input.byte() % 8 == 0 ? input.byte() : OJS_SHM_JOB_HAS_PRIORITY;
    filled.priority = static_cast<std::int8_t>(input.byte());
    filled.result_ttl_s = filled.priority;
    filled.scheduled_at_ms = input.number(input.byte() % 8 == 0 ? 8 : 0);
    filled.expires_at_ms = input.number(input.byte() % 8 == 0 ? 8 : 0);
    filled.timeout_ms = input.byte();
    filled.lease_ms = input.byte();
    return filled;
  }

  void enqueue(Input& input) {
    ojs_shm_retry retry{};
    retry.coefficient = input.byte();
    retry.max_attempts = static_cast<std::uint32_t>(input.number(4));
    retry.backoff = input.byte() % 5;
    retry.flags = input.byte() % 5;
    const Sized<ojs_shm_retry> sized_retry(input, retry);
    ojs_shm_job_spec filled = spec(input);
    if (input.byte() % 2 == 0) filled.retry = sized_retry.get();
    const Sized<ojs_shm_job_spec> sized(input, filled);
    char id[OJS_SHM_ID_SIZE] = {};
    const int code = ojs_shm_enqueue(producer_, sized.get(), id);
    judge(producer_, code);
    require((std::strlen(id) == OJS_SHM_ID_SIZE - 1) == (code == OJS_SHM_OK),
            "an id without a job");
    if (code == OJS_SHM_OK) id_ = id;
  }

  void enqueue_batch(Input& input) {
    // An array of one size: the distance between two is the first one's struct_size.
    const std::size_t size =
        input.byte() % 2 == 0 ? sizeof(ojs_shm_job_spec) : 8 * (1 + input.below(30));
    const std::size_t count = input.below(5);
    std::vector<unsigned char> bytes(size * count);
    for (std::size_t i = 0; i < count; ++i) {
      ojs_shm_job_spec filled = spec(input);
      filled.struct_size = i == 3 ? input.byte() : size;
      std::memcpy(bytes.data() + i * size, &filled, std::min(size, sizeof filled));
    }
    std::unique_ptr<char[]> ids(new char[count * OJS_SHM_ID_SIZE]);
    judge(producer_,
          ojs_shm_enqueue_batch(producer_, reinterpret_cast<ojs_shm_job_spec*>(bytes.data()), count,
                                input.byte() % 2 == 0 ? nullptr : ids.get()));
  }

  void fetch(Input& input) {
    if (input.byte() % 4 != 0) return judge(worker_, ojs_shm_fetch(worker_, job(input), 0));
    judge(worker_, ojs_shm_fetch_batch(worker_, jobs_, input.below(std::size(jobs_) + 1), 0));
  }
  void ack(Input& input) {
    std::size_t size = 0;
    ojs_shm_job* held = job(input);
    const char* result = long_text(input, "[true]", size);
    if (input.byte() % 4 != 0) return judge(worker_, ojs_shm_ack(worker_, held, result, size));
    unsigned char lost[sizeof jobs_ / sizeof *jobs_] = {};
    judge(worker_, ojs_shm_ack_batch(worker_, jobs_, input.below(std::size(jobs_) + 1),
                                     result == nullptr ? nullptr : lost));
  }
  void nack(Input& input) {
    ojs_shm_failure failure{};
    failure.code = text(input, "failed");
    failure.message = text(input, "it failed");
    failure.type = text(input, nullptr);
    failure.details = long_text(input, nullptr, failure.details_size);
    failure.flags = input.byte() % 4;
    if (input.byte() % 4 == 0) failure.rate_limit_until_ms = input.number(8);
    const Sized<ojs_shm_failure> sized(input, failure);
    const Sized<ojs_shm_nack_outcome> outcome(input, {});
    judge(worker_, ojs_shm_nack(worker_, job(input), input.byte() % 4 == 0 ? nullptr : sized.get(),
                                input.byte() % 4 == 0 ? nullptr : outcome.get()));
  }
  void settle(Input& input) {
    ojs_shm_job* held = job(input);
    std::uint64_t deadline = 0;
    if (input.byte() % 2 == 0)
      judge(worker_, ojs_shm_heartbeat(worker_, held, static_cast<std::uint32_t>(input.number(4)),
                                       &deadline));
    if (input.byte() % 2 == 0)
      judge(worker_, ojs_shm_progress(worker_, held, static_cast<double>(input.byte()) / 100));
    judge(worker_, ojs_shm_progress_texts(worker_, held, static_cast<double>(input.byte()) / 100,
                                          text(input, "half"), nullptr, 0));
    if (input.byte() % 2 == 0) judge(worker_, ojs_shm_requeue(worker_, held));
    judge(nullptr, ojs_shm_cancel_requested(held));
  }
  void read_job(Input& input) {
    const Sized<ojs_shm_job_fields> fields(input, {});
    ojs_shm_job* read = job(input);
    judge(read, ojs_shm_job_read(read, fields.get()));
  }
  void open_worker(Input& input) {
    const char* queues[] = {text(input, "default"), text(input, "other"), text(input, "third")};
    ojs_shm_worker_options options{};
    options.queues = queues;
    options.queue_count = input.below(std::size(queues) + 1);
    options.flags = input.byte() % 4;
    const Sized<ojs_shm_worker_options> sized(input, options);
    ojs_shm_worker* made = nullptr;
    judge(nullptr, ojs_shm_worker_open(segment_.get(), sized.get(), &made));
    if (made == nullptr) return;
    judge(made, ojs_shm_fetch(made, job(input), 0));
    require(ojs_shm_close(made) == OJS_SHM_OK, "an open handle was not one");
  }
  void list(Input& input) {
    ojs_shm_job_filter filter{};
    filter.queue = text(input, nullptr);
    filter.type = text(input, nullptr);
    filter.limit = input.byte();
    filter.state = input.byte() % 10;
    filter.flags = input.byte() % 5;
    const Sized<ojs_shm_job_filter> sized(input, filter);
    const Buffer buffer(input);
    look_at(buffer, ojs_shm_list(observer_, sized.get(), buffer.data(), buffer.size()));
    look_at(buffer, ojs_shm_page(observer_, sized.get(), input.byte() % 4, input.byte() % 2,
                                 input.byte(), buffer.data(), buffer.size()));
  }
  void set_queue(Input& input) {
    ojs_shm_queue_settings settings{};
    settings.max_depth = input.byte();
    settings.max_size_bytes = input.number(2);
    settings.paused = input.byte() % 2;
    settings.set = input.byte() % 9;
    const Sized<ojs_shm_queue_settings> sized(input, settings);
    judge(admin_, ojs_shm_set_queue(admin_, text(input, "default"), sized.get()));
  }
  void priorities(Input& input) {
    std::int64_t priority = 0;
    judge(admin_, ojs_shm_set_default_priority(admin_, text(input, "fuzz.job"),
                                               static_cast<std::int8_t>(input.byte())));
    judge(observer_, ojs_shm_default_priority(observer_, text(input, "fuzz.job"), &priority));
    judge(observer_, ojs_shm_priority_by_name(observer_, text(input, "urgent"), &priority));
    judge(producer_,
          ojs_shm_reprioritize(producer_, text(input, id_.c_str()), input.byte(), nullptr));
    judge(producer_, ojs_shm_activate(producer_, text(input, id_.c_str())));
    judge(producer_, ojs_shm_promote(producer_, text(input, id_.c_str())));
    judge(admin_, ojs_shm_bulk(admin_, input.byte() % 6, nullptr, nullptr));
    judge(admin_, ojs_shm_dead_retry(admin_, text(input, id_.c_str())));
    judge(admin_, ojs_shm_dead_drop(admin_, text(input, id_.c_str())));
    judge(admin_, ojs_shm_drop(admin_, text(input, id_.c_str())));
    const std::uint64_t most = input.byte() % 4 == 0 ? OJS_SHM_AS_IT_IS : input.byte();
    judge(admin_, ojs_shm_set_dead_retention(admin_, OJS_SHM_AS_IT_IS, most));
    judge(admin_, ojs_shm_delete_queue(admin_, text(input, "gone"), input.byte() % 4));
    watch(input);
  }
  void watch(Input& input) {
    judge(admin_, ojs_shm_set_events(admin_, input.byte() % 2));
    const int on = input.byte() % 2;
    judge(admin_, ojs_shm_set_strict_envelopes(admin_, on));
    judge(admin_, ojs_shm_set_immutable_priorities(admin_, on));
    judge(admin_, ojs_shm_set_maintenance(admin_, on, text(input, "fuzz")));
    ojs_shm_events* events = nullptr;
    const char* const wanted[] = {"job.*", text(input, "evt_0190a5b0-0000-7000-8000-000000000001")};
    const ojs_shm_event_options options = {.struct_size = sizeof options,
                                           .after = input.byte() % 2 == 0 ? wanted[1] : nullptr,
                                           .after_position = input.byte(),
                                           .types = wanted,
                                           .type_count = input.byte() % 3U,
                                           .queues = wanted,
                                           .queue_count = input.byte() % 3U,
                                           .jobs = nullptr,
                                           .job_count = 0,
                                           .job_types = nullptr,
                                           .job_type_count = 0,
                                           .tenant = nullptr,
                                           .flags = input.byte() % 4U,
                                           .reserved = 0};
    const int opened = input.byte() % 2 == 0
                           ? ojs_shm_events_open(segment_.get(), input.byte() % 8, &events)
                           : ojs_shm_events_choose(segment_.get(), &options, &events);
    judge(nullptr, opened);
    if (opened < 0) return;
    const Buffer buffer(input);
    const std::int64_t length = ojs_shm_next_event(events, buffer.data(), buffer.size());
    judge(events, length);
    buffer.judge(events, length);
    judge(events, ojs_shm_events_lost(events));
    judge(events, ojs_shm_event_position(events));
    judge(events, ojs_shm_events_resumed(events));
    require(ojs_shm_close(events) == OJS_SHM_OK, "open events were not closed");
    look(input, ojs_shm_waits);
  }
  void say(Input& input,
           std::int64_t (*entry)(ojs_shm_producer*, const char*, char*, std::size_t)) {
    const Buffer buffer(input);
    const std::int64_t length =
        entry(producer_, text(input, id_.c_str()), buffer.data(), buffer.size());
    judge(producer_, length);
    buffer.judge(producer_, length);
  }
  void look(Input& input, std::int64_t (*entry)(ojs_shm_observer*, char*, std::size_t)) {
    const Buffer buffer(input);
    look_at(buffer, entry(observer_, buffer.data(), buffer.size()));
  }
  void look_at(const Buffer& buffer, std::int64_t length) {
    judge(observer_, length);
    buffer.judge(observer_, length);
  }
  void last_error(Input& input) {
    const Sized<ojs_shm_error> error(input, {});
    judge(nullptr,
          ojs_shm_last_error_detail(input.byte() % 2 == 0 ? producer_ : nullptr, error.get()));
  }
  /// Handles of another kind, and none.
  void wrong_handles(Input& input) {
    void* handles[] = {nullptr, producer_, worker_, admin_, observer_, jobs_[0], segment_.get()};
    void* wrong = handles[input.below(std::size(handles))];
    const Buffer buffer(input);
    if (wrong != producer_)
      require(ojs_shm_enqueue(static_cast<ojs_shm_producer*>(wrong), nullptr, nullptr) ==
                  OJS_SHM_E_INVALID,
              "accepted");
    if (wrong != worker_)
      require(ojs_shm_fetch(static_cast<ojs_shm_worker*>(wrong), jobs_[0], 0) == OJS_SHM_E_INVALID,
              "accepted");
    if (wrong != observer_)
      require(ojs_shm_stats(static_cast<ojs_shm_observer*>(wrong), buffer.data(), buffer.size()) ==
                  OJS_SHM_E_INVALID,
              "accepted");
  }

  std::unique_ptr<ojs_shm_segment> segment_;
  ojs_shm_producer* producer_ = nullptr;
  ojs_shm_admin* admin_ = nullptr;
  ojs_shm_observer* observer_ = nullptr;
  ojs_shm_worker* worker_ = nullptr;
  ojs_shm_job* jobs_[3] = {};
  std::string id_;
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<std::unique_ptr<char[]>> exact_;
};

}  // namespace
}  // namespace ojs_shm::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ojs_shm::fuzz;
  using ojs_shm::internal::Attachment;
  static const auto* attachment = [] {
    write_file(ojs_shm::internal::path_of(segment_name()), images().front().bytes);
    auto opened = Attachment::open(segment_name(), Attachment::Role::kBroker);
    require(opened.ok(), "the image was refused");
    return new std::shared_ptr<Attachment>(*opened);
  }();
  begin_run();
  ojs_shm::shm::Segment& segment = (*attachment)->segment();
  std::memcpy(static_cast<void*>(&segment.header()), images().front().bytes.data(),
              images().front().bytes.size());
  // NO CRASH POINT: no other is there
  segment.process((*attachment)->process()).live.store(1, ojs_shm::shm::Point::kNone);
  Input input(data, size);
  Caller caller(*attachment);
  for (int steps = 0; steps < 64 && !input.empty(); ++steps) caller.call(input);
  return 0;
}
