// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/admin.hpp>

#include <time.h>

#include "engine/audit.hpp"
#include "shm/parking.hpp"
#include "worker_api/attachment.hpp"

namespace ojs_shm {

using internal::Attachment;

struct Broker::Impl {
  std::optional<Segment> segment;
  Attachment* attachment = nullptr;
  bool resumed = false;
  std::string report;
  shm::LocalFlag stopping;
  ~Impl() {
    if (attachment == nullptr || attachment->forked()) return;
    attachment->segment().header().broker.store(0, shm::Point::kSeatLeft);
    attachment->locks().unlock(shm::kBrokerSeat);
  }
};

Broker::Broker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Broker::Broker(Broker&&) noexcept = default;
Broker::~Broker() = default;
bool Broker::resumed() const { return impl_->resumed; }
std::string Broker::resume_report() const { return impl_->report; }
const Segment& Broker::segment() const { return *impl_->segment; }
bool Broker::others_attached() const { return impl_->attachment->others_attached(); }

Result<Broker> Broker::start(const SegmentName& name, const SegmentOptions& options) {
  auto impl = std::make_unique<Impl>();
  auto opened = Attachment::create(name, options, Attachment::Role::kBroker);
  if (!opened && opened.code() == Code::kInUse) {
    opened = Attachment::open(name, Attachment::Role::kBroker);
    impl->resumed = true;
  }
  if (!opened) return opened.error();
  std::shared_ptr<Attachment> attachment = std::move(opened).value();
  if (!attachment->locks().try_lock(shm::kBrokerSeat))
    return Error{
        Code::kInUse, "a broker already serves segment '" + name.name + "' in " + name.dir, "broker", 0, 0, ""};
  const std::string_view found = engine::info(attachment->store().convention()).name;
  if (impl->resumed && !options.convention.empty() && options.convention != found) {
    attachment->locks().unlock(shm::kBrokerSeat);
    return Error{Code::kOtherFormat,
                 "segment '" + name.name + "' has the priority convention '" + std::string(found) + "', not '" +
                     options.convention + "'",
                 "convention",
                 0,
                 0,
                 ""};
  }
  attachment->segment().header().broker.store(attachment->process() + 1, shm::Point::kSeatTaken);
  impl->attachment = attachment.get();
  if (impl->resumed) {
    const std::uint32_t dead = attachment->repair_the_dead();
    std::uint32_t mended = 0;
    std::size_t left = 0;
    if (!attachment->others_attached()) {
      mended = attachment->mend();
      left = engine::audit_patiently(attachment->store()).size();
    }
    impl->report = "repaired after " + std::to_string(dead) + " dead processes, mended " + std::to_string(mended) +
                   " things, " + std::to_string(left) + " violations left";
  }
  impl->segment.emplace(Segment::of(std::move(attachment)));
  return Broker(std::move(impl));
}

Status Broker::run(const std::function<void(std::string_view)>& log) {
  Attachment& attachment = *impl_->attachment;
  const auto stop = [this] { return impl_->stopping.get(); };
  // A member may be standing in for us; it leaves the seat when it sees that a broker lives.
  attachment.ring_doorbell();
  while (!stop() && !attachment.locks().try_lock(shm::kSupervisorSeat)) {
    const timespec moment{0, 2'000'000};
    ::nanosleep(&moment, nullptr);
    attachment.ring_doorbell();
  }
  if (stop()) return {};
  attachment.supervise(stop, log);
  attachment.locks().unlock(shm::kSupervisorSeat);
  return {};
}

void Broker::stop() noexcept {
  impl_->stopping.set();
  impl_->attachment->ring_doorbell();
}

}  // namespace ojs_shm
