// SPDX-License-Identifier: Apache-2.0
#include "worker_api/roles/told_events.hpp"

#include <algorithm>
#include <numeric>

namespace ojs_shm::internal {

using engine::EventFacts;

namespace {

// of the second half of an id, below the two bits of its variant
constexpr std::uint64_t kSequences = (1ULL << 48) - 1, kSalts = 0x3FFF;
constexpr std::string_view kPrefix = "evt_";
constexpr std::uint32_t kLanes = 0xFFF;

std::optional<engine::JobId> digits_of(std::string_view id) {
  return id.starts_with(kPrefix) ? engine::parse_id(id.substr(kPrefix.size())) : std::nullopt;
}

}  // namespace

std::string event_id(const EventFacts& facts, std::uint64_t salt) {
  const engine::JobId id{facts.time_ms << 16 | 0x7000 | (facts.lane & kLanes),
                         1ULL << 63 | (salt & kSalts) << 48 | (facts.sequence & kSequences)};
  return std::string(kPrefix) + engine::to_string(id);
}

std::optional<EventMark> parse_event_id(std::string_view id, std::uint64_t salt) {
  const auto read = digits_of(id);
  if (!read || (read->lo >> 48 & kSalts) != (salt & kSalts)) return std::nullopt;
  return EventMark{read->hi >> 16, static_cast<std::uint32_t>(read->hi & kLanes),
                   read->lo & kSequences};
}

bool is_event_id(std::string_view text) { return digits_of(text).has_value(); }

ToldEvents::ToldEvents(const engine::Store& store, const EventOptions& options)
    : reader_(store, options.from_start || !options.after.empty()),
      settle_ms_(options.settle_ms),
      position_(std::reduce(reader_.seen().begin(), reader_.seen().end())) {
  if (options.after.empty()) return;
  after_ = {parse_event_id(options.after, store.segment().header().salt), options.after_position};
  if (after_->mark && after_->mark->lane >= reader_.seen().size()) after_->mark.reset();
}

void ToldEvents::read_more() {
  batch_.clear();
  at_ = 0;
  const std::uint64_t lost = reader_.poll(batch_, settle_ms_);
  position_ += lost;
  if (after_)
    begin_behind(*after_);
  else
    lost_ += lost;
}

/// Leaves out the events that come no later than the named one. If that is kept no more, these are
/// the ones before its time.
void ToldEvents::begin_behind(const After& after) {
  auto first = batch_.end();
  bool comes = false, found = false;
  if (after.mark) {
    const EventMark mark = *after.mark;
    first = std::ranges::find_if(batch_, [&](const EventFacts& each) {
      return each.lane == mark.lane && each.sequence == mark.sequence;
    });
    found = first != batch_.end();
    comes = !found && reader_.left_some() && reader_.seen()[mark.lane] < mark.sequence;
    if (!found && !comes)
      first = std::ranges::find_if(
          batch_, [&](const EventFacts& each) { return each.time_ms >= mark.time_ms; });
  } else {
    first = batch_.begin();
  }
  if (found) do
      ++first;
    while (first != batch_.end() && first->kind == engine::EventKind::kText &&
           first->lane == after.mark->lane);
  at_ = static_cast<std::size_t>(first - batch_.begin());
  position_ += at_;
  if (comes) return;
  resumed_ = found;
  lost_ = after.position == 0 ? 0 : position_ - std::min(position_, after.position);
  after_.reset();
}

const EventFacts* ToldEvents::next() {
  do {
    if (is_read_up()) read_more();
    if (is_read_up()) return nullptr;
    ++position_;
  } while (batch_[at_++].kind == engine::EventKind::kText);  // of an event that is lost
  return &batch_[at_ - 1];
}

const EventFacts* ToldEvents::text_behind(const EventFacts& facts, std::uint64_t sequence) {
  if (is_read_up()) return nullptr;
  const EventFacts& next = batch_[at_];
  if (next.kind != engine::EventKind::kText || next.lane != facts.lane || next.sequence != sequence)
    return nullptr;
  ++position_, ++at_;
  return &next;
}

}  // namespace ojs_shm::internal
