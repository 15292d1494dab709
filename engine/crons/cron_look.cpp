// SPDX-License-Identifier: Apache-2.0
#include "engine/crons/cron_look.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/tables/job_look.hpp"
#include "shm/blocks.hpp"
#include "shm/parking.hpp"

namespace ojs_shm::engine {

CronFacts read_facts(const CronRecord& record) {
  return {CronControl(record.control.load()),
          record.next.load(),
          record.last.load(),
          record.runs.load(),
          record.skips.load(),
          record.created_at.load(),
          {record.last_hi.load(), record.last_lo.load()}};
}

CronFacts look_at_cron(const Store& store, std::uint32_t at) {
  const CronRecord& record = store.crons[at];
  for (unsigned look = 0;; ++look) {
    const CronFacts facts = read_facts(record);
    const bool whole = !facts.control.changing() &&
                       record.control.load() == facts.control.word;  // PAIR cron-change
    if (whole || look == 64) return facts;
    shm::pause_cpu();
  }
}

std::string CronTexts::encode() const {
  std::string bytes(name);
  for (const std::string* text : {&expression, &timezone, &description}) {
    bytes += '\0';
    bytes += *text;
  }
  return bytes;
}

CronTexts CronTexts::decode(std::string_view bytes) {
  CronTexts texts;
  for (std::string* text : {&texts.name, &texts.expression, &texts.timezone}) {
    const std::size_t end = std::min(bytes.find('\0'), bytes.size());
    *text = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  texts.description = bytes;
  return texts;
}

std::optional<CronTemplate> read_template(const Store& store, std::uint32_t slot, bool body) {
  constexpr std::uint32_t kLongestTexts = 4096;
  if (slot >= store.slots()) return std::nullopt;
  const JobRecord& r = store.job(slot);
  const Control control(r.control.load());
  if (control.state() != kSlotTemplate) return std::nullopt;
  CronTemplate found;
  Snapshot& s = found.job;
  s.slot = slot;
  s.control = control;
  s.id = r.id();
  s.queue = r.queue.get();
  s.generation = r.generation.get();
  s.limits = r.limits.get();
  s.attempt = r.attempt.get();
  s.policy = r.flags();
  if (r.timed()) s.times = read_times(r.own_times());
  s.expires_at = r.timed() ? r.own_times().expires_at.get() : r.expires_at.get();
  s.created_at = r.created_at.get();
  s.timeout_ms = r.timeout_ms.get();
  s.lease_ms = r.lease_ms.get();
  s.retry = {s.policy.max_attempts(),
             r.initial_ms.get(),
             r.max_ms.get(),
             std::bit_cast<float>(r.coefficient.get()),
             s.policy.backoff(),
             s.policy.has(Policy::kJitter),
             s.policy.has(Policy::kDeadLetter)};
  s.annex = read_annex(r.annex(), kOfCron | (r.annex().uniqueness.get() != 0 ? kUnique : 0));
  s.type_length = r.type_length();
  s.args_length = r.args_length();
  const std::uint64_t size = r.body_length(), texts = r.result_length.get();
  if (size > store.max_body() || texts > kLongestTexts) return std::nullopt;
  std::string bytes;
  shm::Blocks::read(store.segment(), r.result_block.get(), slot, s.generation, texts, bytes);
  if (bytes.size() != texts) return std::nullopt;
  found.texts = CronTexts::decode(bytes);
  if (!body) {
    // its name was asked for
  } else if (r.body_block.get() == kNoIndex) {
    if (size > r.inline_room()) return std::nullopt;
    s.body.resize(size);
    shm::copy_out(s.body.data(), r.inline_bytes, size);
  } else {
    shm::Blocks::read(store.segment(), r.body_block.get(), slot, s.generation, size, s.body);
    if (s.body.size() != size) return std::nullopt;
  }
  return r.control.load() == control.word ? std::optional(std::move(found)) : std::nullopt;
}

std::uint32_t find_cron(const Store& store, std::string_view name) {
  for (std::uint32_t at = 0; at < kCrons; ++at)
    for (unsigned look = 0; look < 64; ++look) {
      const CronControl control(store.crons[at].control.load());
      if (!control.there()) break;
      if (const auto found = read_template(store, control.slot(), false)) {
        if (found->texts.name == name) return at;
        break;
      }
      if (store.crons[at].control.load() == control.word) break;  // damaged
    }
  return kNoIndex;
}

std::string cron_of(const Store& store, const NewAnnex& annex) {
  for (unsigned look = 0; look < 64; ++look) {
    const CronControl control(store.crons[annex.cron].control.load());
    if (!control.there() || control.life() != static_cast<std::uint16_t>(annex.cron_life)) break;
    if (auto found = read_template(store, control.slot(), false))
      return std::move(found->texts.name);
    if (store.crons[annex.cron].control.load() == control.word) break;
  }
  return {};
}

}  // namespace ojs_shm::engine
