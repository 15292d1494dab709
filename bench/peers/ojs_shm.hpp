// SPDX-License-Identifier: Apache-2.0
//
// Ourselves, through the public C++ API and with the shipped defaults: a broker process supervises,
// every job has an id, a state, an ack, and survives the death of any process.
#pragma once

#include <unistd.h>

#include <cstring>
#include <ojs_shm/admin.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "bench/peers/peer.hpp"
#include "bench/stopwatch.hpp"

namespace ojs_shm::bench {

/// A broker in a process of its own, as ojs-shm-broker runs it; ended, and its segment removed,
/// with this object.
class BrokerProcess {
 public:
  BrokerProcess(SegmentName name, const SegmentOptions& options);
  BrokerProcess(const BrokerProcess&) = delete;
  BrokerProcess& operator=(const BrokerProcess&) = delete;
  ~BrokerProcess();
  const SegmentName& name() const { return name_; }

 private:
  SegmentName name_;
  pid_t pid_ = -1;
};

[[noreturn]] inline void throw_error(const char* what, const Error& error) {
  throw std::runtime_error(std::string(what) + ": " + error.message);
}

template <class T>
T value_of(Result<T> result, const char* what) {
  if (!result.ok()) throw_error(what, result.error());
  return std::move(result).value();
}

class OjsShm {
 public:
  static constexpr const char* kName = "ojs_shm";
  static constexpr bool kInProcess = false;
  static constexpr Taking kTaking = Taking::kPolling;
  static constexpr Pace kPace = Pace::kShared;

  explicit OjsShm(const Plan& plan) : broker_(own_name(), options_for(plan)) {
    if (!plan.bounded && plan.settings.empty()) return;
    QueueSettings settings;
    if (!plan.settings.empty())
      settings = value_of(parse_queue_settings(plan.settings), "settings");
    if (plan.bounded) settings.max_depth = 10'000;
    auto admin = value_of(Admin::attach(broker_.name()), "attach");
    const Status set = admin.set_queue("default", settings);
    if (!set.ok()) throw_error("set_queue", set.error());
  }

  class Producer {
   public:
    explicit Producer(OjsShm& peer)
        : producer_(value_of(ojs_shm::Producer::attach(peer.attached()), "attach")) {
      job_.type = "bench.job";
    }
    void enqueue(unsigned level, const Body& body) {
      job_.args = {body.bytes, sizeof body};
      job_.priority = level;
      for (FullQueueWait wait;; wait()) {
        const auto accepted = producer_.enqueue(job_);
        if (accepted.ok()) return;
        if (accepted.code() != Code::kQueueFull && accepted.code() != Code::kSegmentFull) {
          throw_error("enqueue", accepted.error());
        }
      }
    }

   private:
    ojs_shm::Producer producer_;
    JobSpec job_;
  };

  class Worker {
   public:
    explicit Worker(OjsShm& peer)
        : worker_(value_of(ojs_shm::Worker::attach(peer.attached(), {}), "attach")) {}
    bool poll(Body& out) { return took(worker_.try_fetch(job_), out); }
    bool receive(Body& out, Patience patience) { return took(worker_.fetch(job_, patience), out); }
    void ack() {
      const Status done = worker_.ack(job_);
      if (!done.ok()) throw_error("ack", done.error());
    }

   private:
    bool took(const Status& status, Body& out) {
      if (status.ok()) {
        std::memcpy(out.bytes, job_.args().data(), sizeof out);
        return true;
      }
      if (status.code() != Code::kEmpty && status.code() != Code::kTimeout)
        throw_error("fetch", status.error());
      return false;
    }
    ojs_shm::Worker worker_;
    Job job_;
  };

  const SegmentName& name() const { return broker_.name(); }
  /// The one attachment of this process, as a program has it; a part that runs in a process of its
  /// own makes its own.
  const Segment& attached() {
    if (attached_by_ != ::getpid()) {
      segment_ = value_of(Segment::attach(broker_.name()), "attach");
      attached_by_ = ::getpid();
    }
    return *segment_;
  }

 private:
  static SegmentName own_name() {
    SegmentName name = segment_name_from_environment();
    name.name = "bench." + std::to_string(::getpid());
    return name;
  }
  static SegmentOptions options_for(const Plan& plan) {
    constexpr std::size_t kDefaultSegmentHolds = 50'000;  // and as many finished ones
    SegmentOptions options;
    if (plan.waiting > kDefaultSegmentHolds)
      options.slots = static_cast<std::uint32_t>(plan.waiting + plan.waiting / 4);
    options.max_tenants = plan.tenants;
    return options;
  }

  BrokerProcess broker_;
  std::optional<Segment> segment_;
  pid_t attached_by_ = -1;
};

static_assert(ParkingPeer<OjsShm>);

}  // namespace ojs_shm::bench
