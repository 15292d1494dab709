// SPDX-License-Identifier: Apache-2.0
#include <ojs_shm/admin.hpp>

#include <grp.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <sstream>

#include "engine/audit/audit.hpp"
#include "shm/parking.hpp"
#include "worker_api/roles/attachment.hpp"

namespace ojs_shm {

using internal::Attachment;
using internal::Deaths;

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

namespace {

/// What of `options` a segment that exists does not have.
std::string options_not_had(Attachment& attachment, const SegmentOptions& options) {
  const shm::Segment& segment = attachment.segment();
  const shm::Geometry& g = segment.geometry();
  std::ostringstream text;
  const auto tell = [&text](std::string_view option, std::uint64_t has, std::uint64_t given,
                            bool same) {
    if (!same)
      text << (text.tellp() == 0 ? "" : ", ") << option << ' ' << has << " instead of " << given;
  };
  const auto tell_if_given = [&tell](std::string_view option, std::uint64_t has,
                                     std::uint64_t given) {
    tell(option, has, given, given == 0 || given == has);
  };
  const std::uint32_t handles = g.lanes - std::min(g.lanes, engine::kServiceLanes);
  tell_if_given("slots", g.slots, options.slots);
  tell_if_given("max_tenants", attachment.store().flows.size(), (options.max_tenants + 1) & ~1U);
  tell_if_given("max_queues", attachment.store().max_queues(), options.max_queues);
  tell_if_given("max_body", attachment.store().max_body(), options.max_body_bytes);
  tell_if_given("handles", handles, options.max_handles);
  tell_if_given("max_waiting", attachment.store().tickets.size(), options.max_waiting);
  tell_if_given("retention (ms)", attachment.store().header().retention_ms, options.retention_ms);
  // A segment is a little smaller than its size was chosen; so: would that size have come to this
  // one?
  engine::Plan plan;
  plan.size_bytes = options.size_bytes;
  plan.slots = g.slots;
  plan.max_queues = attachment.store().max_queues();
  plan.max_tenants = attachment.store().flows.size();
  plan.max_body_bytes = attachment.store().max_body();
  plan.max_handles = handles;
  plan.max_waiting = attachment.store().tickets.size();
  const engine::Measured measured = engine::measure(plan);
  tell("size", segment.size(), options.size_bytes,
       options.size_bytes == 0 ||
           (measured.problem.empty() && shm::offsets_of(measured.geometry).end == segment.size()));
  struct stat file {};
  if (::stat(segment.path().c_str(), &file) != 0) return text.str();
  text << std::oct;
  tell("mode", file.st_mode & 0777, options.mode, (file.st_mode & 0777) == options.mode);
  const struct group* group = options.group.empty() ? nullptr : ::getgrnam(options.group.c_str());
  text << std::dec;
  if (group != nullptr) tell("group", file.st_gid, group->gr_gid, file.st_gid == group->gr_gid);
  return text.str();
}

/// By whom, and what to do when that one does nothing.
Error already_served(Attachment& attachment) {
  const SegmentName& name = attachment.name();
  Error error =
      Error{Code::kInUse, "a broker already serves segment '" + name.name + "' in " + name.dir}
          .about("broker");
  const std::uint32_t broker = attachment.segment().header().broker.load();
  // it begins or ends just now
  if (broker == 0 || broker > attachment.segment().geometry().processes) return error;
  const shm::ProcessRecord& record = attachment.segment().process(broker - 1);
  const std::string pid = std::to_string(record.pid.load());
  error.message += ": process " + pid;
  if (shm::stopped(record))
    error.message += ", which is stopped; `kill -CONT " + pid +
                     "` lets it go on, or end it first: kill -KILL " + pid;
  return error;
}

}  // namespace

std::string Broker::kept_options(const SegmentOptions& options) const {
  return options_not_had(*impl_->attachment, options);
}

Result<Broker> Broker::start(const SegmentName& name, const SegmentOptions& options) {
  auto impl = std::make_unique<Impl>();
  auto opened = Attachment::create(name, options, Attachment::Role::kBroker);
  // One that is there may be removed just now.
  for (int look = 0; look < 3 && !opened && opened.code() == Code::kInUse; ++look) {
    opened = Attachment::open(name, Attachment::Role::kBroker);
    impl->resumed = opened.ok();
    if (opened || opened.error().subject != "segment" || opened.code() != Code::kCannotAttach)
      break;
    opened = Attachment::create(name, options, Attachment::Role::kBroker);
  }
  if (!opened) return opened.error();
  std::shared_ptr<Attachment> attachment = std::move(opened).value();
  if (!attachment->locks().try_lock(shm::kBrokerSeat)) return already_served(*attachment);
  const std::string_view found = engine::info(attachment->store().convention()).name;
  if (impl->resumed && !options.convention.empty() && options.convention != found) {
    attachment->locks().unlock(shm::kBrokerSeat);
    return Error{Code::kOtherFormat, "segment '" + name.name + "' has the priority convention '" +
                                         std::string(found) + "', not '" + options.convention +
                                         "'" + internal::how_to_move(name)}
        .about("convention");
  }
  attachment->segment().header().broker.store(attachment->process() + 1, shm::Point::kSeatTaken);
  impl->attachment = attachment.get();
  if (impl->resumed) {
    Deaths deaths;
    const std::uint32_t dead = attachment->repair_the_dead(&deaths);
    std::uint32_t mended = 0;
    std::size_t left = 0;
    if (!attachment->others_attached()) {
      mended = attachment->mend();
      left = engine::audit_patiently(attachment->store()).size();
    }
    impl->report = (dead == 0 ? "repaired after 0 dead processes" : deaths.text()) + ", mended " +
                   std::to_string(mended) + " things, " + std::to_string(left) + " violations left";
  }
  impl->segment.emplace(Segment::of(std::move(attachment)));
  return Broker(std::move(impl));
}

Status Broker::run(const std::function<void(std::string_view)>& log) {
  Attachment& attachment = *impl_->attachment;
  const auto stop = [this] { return impl_->stopping.get(); };
  // A member may be standing in for us; it leaves the seat when it sees that a broker lives.
  attachment.ring_doorbell();
  bool seated = false;
  while (!stop() && !(seated = attachment.locks().try_lock(shm::kSupervisorSeat))) {
    const timespec moment{0, 2'000'000};
    ::nanosleep(&moment, nullptr);
    attachment.ring_doorbell();
  }
  if (!seated) return {};
  attachment.supervise(stop, log);
  attachment.locks().unlock(shm::kSupervisorSeat);
  return {};
}

void Broker::stop() noexcept {
  impl_->stopping.set();
  impl_->attachment->ring_doorbell();
}

}  // namespace ojs_shm
