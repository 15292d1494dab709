// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "engine/observing/events.hpp"
#include "engine/workflows/workflow.hpp"

namespace ojs_shm::engine {

std::uint64_t events_told(const Store& store) {
  std::uint64_t told = 0;
  for (std::uint32_t lane = 0; lane < store.lanes(); ++lane)
    told += store.segment().lane(lane).counters[kEventsTold].get_ordered();
  return told;
}

EventReader::EventReader(const Store& store, bool from_start)
    : store_(store), seen_(store.lanes(), 0), done_(store.event_pages.size(), 0) {
  for (std::uint32_t lane = 0; lane < store.lanes() && !from_start; ++lane)
    seen_[lane] = store.segment().lane(lane).counters[kEventsTold].get_ordered();
}

/// Adds what is new in a page. The page may be given to another lane meanwhile: 1. an event counts
/// when its stamp is there before it is copied; 2. and when the page still has the same turn
/// afterwards.
void EventReader::read_page(std::uint32_t page, std::vector<Found>& lanes) {
  const EventPageControl control(store_.event_controls[page].load());
  if (control.turn() == 0 || control.word == done_[page] || control.lane() >= lanes.size()) return;
  Found& found = lanes[control.lane()];
  const std::uint64_t seen = seen_[control.lane()];
  std::uint64_t last = 0;
  for (unsigned i = 0; i < kEventsPerPage; ++i) {
    const EventRecord& record = store_.event_pages[page].event[i];
    if (record.stamp.load() != control.stamp(i)) break;  // 1
    const std::uint64_t sequence = record.sequence.get();
    last = std::max(last, sequence);
    if (sequence <= seen || sequence > found.told) continue;
    const std::uint64_t head = record.kind_rank_time.get(), facts = record.facts.get();
    EventFacts event;
    event.kind = static_cast<EventKind>(head >> 56);
    event.rank = static_cast<std::uint8_t>(head >> 48);
    event.previous_rank = static_cast<std::uint8_t>(facts >> 48);
    event.attempt = static_cast<std::uint16_t>(facts >> 16);
    event.max_attempts = static_cast<std::uint16_t>(facts >> 32);
    event.queue = static_cast<std::uint16_t>(facts);
    event.job = {record.id_hi.get(), record.id_lo.get()};
    event.tag = record.tag.get();
    event.value = record.value.get();
    event.lane = control.lane();
    event.sequence = sequence;
    event.time_ms = head & ((1ULL << 48) - 1);
    if (EventPageControl(store_.event_controls[page].load()).turn() != control.turn())
      return;  // 2. PAIR event-page
    if (event.kind > EventKind::kNone && event.kind < EventKind::kCount)
      found.events.push_back(event);
  }
  if (!control.open() && last <= seen) done_[page] = control.word;
}

namespace {

/// The order of events that have one tag. A job is started, then its holder reports. A workflow
/// begins, then step after step leaves fewer behind.
unsigned stage_of(const EventFacts& event) {
  if (event.kind == EventKind::kJobHeartbeat || event.kind == EventKind::kJobProgress) return 1;
  if (event.kind != EventKind::kWorkflowStepCompleted) return 0;
  return kMostMembers + 1 - std::min<unsigned>(event.max_attempts, kMostMembers);
}

/// By time, but the events of one lane stay in their order, as they come, and those of one job in
/// that of the tags of its slot. A lane's clock may seem to go back, for an event may bear the time
/// at which its operation began; and within a millisecond lanes cannot be told apart.
class Order {
 public:
  explicit Order(std::span<EventFacts> events)
      : given_(events.begin(), events.end()), before_(events.size(), kNone) {
    std::vector<std::size_t> by_time(given_.size());
    std::map<JobId, std::vector<std::size_t>> changes;
    std::vector<std::uint64_t> time(given_.size());
    for (std::size_t i = 0; i < given_.size(); ++i) {
      by_time[i] = i;
      time[i] = follows(i) ? std::max(time[i - 1], given_[i].time_ms) : given_[i].time_ms;
      if (about_a_job(given_[i].kind) && given_[i].job != JobId{})
        changes[given_[i].job].push_back(i);
    }
    std::ranges::stable_sort(by_time, {}, [&](std::size_t i) { return time[i]; });
    for (auto& [job, at] : changes) {
      std::ranges::stable_sort(at, {}, [&](std::size_t i) {
        return std::tuple(given_[i].tag, stage_of(given_[i]), time[i]);
      });
      for (std::size_t i = 1; i < at.size(); ++i) before_[at[i]] = at[i - 1];
    }
    to_ = events.begin();
    for (const std::size_t i : by_time) put(i);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  bool follows(std::size_t i) const { return i > 0 && given_[i].lane == given_[i - 1].lane; }
  /// After what has to be before it. Each is met once, so what a damaged segment says in a circle
  /// ends as well.
  void put(std::size_t last) {
    for (todo_ = {last}; !todo_.empty();) {
      const std::size_t i = todo_.back();
      if (state_[i] == kUnseen) {
        state_[i] = kMet;
        for (const std::size_t before : {before_[i], follows(i) ? i - 1 : kNone})
          if (before != kNone && state_[before] == kUnseen) todo_.push_back(before);
        continue;
      }
      todo_.pop_back();
      if (std::exchange(state_[i], kPut) == kMet) *to_++ = given_[i];
    }
  }

  std::vector<EventFacts> given_;
  std::vector<std::size_t> before_;
  enum State : std::uint8_t { kUnseen, kMet, kPut };
  std::vector<State> state_ = std::vector<State>(before_.size());
  std::vector<std::size_t> todo_;
  std::span<EventFacts>::iterator to_;
};

}  // namespace

std::uint64_t EventReader::poll(std::vector<EventFacts>& events, std::uint64_t settle_ms) {
  const std::uint64_t now = store_.now_ms();
  left_ = false;
  std::vector<Found> lanes(seen_.size());
  bool news = false;
  for (std::uint32_t lane = 0; lane < lanes.size(); ++lane) {
    // What was told before we look through the pages is there, or has been overwritten.
    lanes[lane].told =
        store_.segment().lane(lane).counters[kEventsTold].get_ordered();  // PAIR event-told
    seen_[lane] = std::min(seen_[lane], lanes[lane].told);
    news = news || lanes[lane].told != seen_[lane];
  }
  if (!news) return 0;
  for (std::uint32_t page = 0; page < done_.size(); ++page) read_page(page, lanes);
  const std::uint64_t later = store_.now_ms();

  std::uint64_t lost = 0;
  const std::size_t first = events.size();
  for (std::uint32_t lane = 0; lane < lanes.size(); ++lane) {
    Found& found = lanes[lane];
    std::sort(found.events.begin(), found.events.end(),
              [](const EventFacts& a, const EventFacts& b) { return a.sequence < b.sequence; });
    // Also what was told while we looked: an earlier event of another lane may have been missed.
    const auto young =
        std::find_if(found.events.begin(), found.events.end(), [&](const EventFacts& event) {
          return event.time_ms <= later && now - std::min(now, event.time_ms) < settle_ms;
        });
    if (young != found.events.end()) {
      found.told = young->sequence - 1;
      left_ = true;
    }
    const auto count = static_cast<std::uint64_t>(young - found.events.begin());
    const std::uint64_t told = found.told - seen_[lane];
    lost += told - std::min(told, count);
    events.insert(events.end(), found.events.begin(), young);
    seen_[lane] = found.told;
  }
  Order(std::span(events).subspan(first));
  return lost;
}

}  // namespace ojs_shm::engine
