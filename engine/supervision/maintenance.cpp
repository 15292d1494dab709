// SPDX-License-Identifier: Apache-2.0
#include "engine/supervision/maintenance.hpp"

#include <algorithm>
#include <array>

#include "engine/tables/queue_flags.hpp"

// Maintenance of the whole segment. One word says whether it is on, and each queue has a bit that
// follows it, beside that of its own pause: an operation on a plain queue looks at its bits anyway,
// so maintenance costs it nothing. A queue that has no name yet has the bit, too, and is made with
// it. One lane at a time changes the word, then the bits; after its death the repair makes the bits
// follow.

namespace ojs_shm::engine {

using shm::Point;

MaintenanceView look_at_maintenance(const Store& store) {
  const EngineHeader& header = store.header();
  for (unsigned look = 0; look < 1024; ++look) {
    const MaintenanceWord word(header.maintenance.load());  // PAIR maintenance
    MaintenanceView view{word.on(), std::string(word.length(), '\0'),
                         header.maintenance_since[word.bank()].get(),
                         header.maintenance_end[word.bank()].get()};
    shm::copy_out(view.reason.data(), header.maintenance_reason[word.bank()], word.length());
    if (header.maintenance.load() == word.word) return view;
  }
  return {};
}

Outcome Maintenance::define(bool on, std::string_view reason, std::uint64_t end_ms) {
  EngineHeader& header = store_.header();
  if (!seat().take()) return Outcome::kBusy;
  const MaintenanceWord before(header.maintenance.load());
  const unsigned bank = 1 - before.bank();  // this one is not read
  std::array<char, kReasonBytes> text{};
  std::copy_n(reason.data(), std::min(reason.size(), text.size()), text.data());
  // NO CRASH POINT: a bank means nothing before the word names it
  shm::copy_in(header.maintenance_reason[bank], text.data(), text.size());
  header.maintenance_since[bank].set(store_.now_ms());
  header.maintenance_end[bank].set(end_ms);
  using W = MaintenanceWord;
  header.maintenance.store(W::On::put(on ? 1 : 0) | W::Bank::put(bank) |
                               W::Length::put(std::min(reason.size(), text.size())) |
                               W::Version::put(W::Version::get(before.word) + 1),
                           Point::kMaintenanceSet);  // PAIR maintenance
  follow();
  seat().leave();
  return Outcome::kOk;
}

/// Makes the bits of all queues, also of those to come, say what the word says.
void Maintenance::follow() {
  const std::uint64_t wanted =
      MaintenanceWord(store_.header().maintenance.load()).on() ? kMaintained : 0;
  for (std::uint32_t q = 0; q < store_.max_queues(); ++q) {
    QueueRecord& queue = store_.queue(q);
    if ((queue.flags.load() & kMaintained) == wanted) continue;
    set_flags(queue, kMaintained, wanted);
    if (wanted == 0 && queue.name_hash.load() != 0) actor_.bell().wake_all(queue);
  }
}

void Maintenance::end_change() {
  if (!seat().ours()) return;
  follow();
  seat().leave();
}

}  // namespace ojs_shm::engine
