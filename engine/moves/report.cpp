// SPDX-License-Identifier: Apache-2.0
#include "engine/moves/report.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/moves/holder.hpp"
#include "engine/tables/job_look.hpp"

// Reports of running jobs. The holder reports, and any process by the job's id; so no lane holds
// the slot here, and several may report at once. A report that is behind what its attempt has
// reported renews the lease and changes nothing else. For any other report:
//
//   1. the lane announces the word of the blocks that it is going to take (kReport);
//   2. it writes the texts into blocks with that word, which no other lane uses;
//   3. one cas of `signals` puts fraction and texts in the place of those before;
//   4. it frees the texts before.
//
// The block of the texts before may have gone on, to texts that no job has yet or that are another
// job's. So the lane looks at `signals` again before it names in its intent what it replaces.
//
// What the report leaves out, 2. takes from the texts before; when others took their place until 3,
// the lane begins again. `signals` counts such changes, but may come to be as it was: what tells
// texts apart for certain is the word of their blocks, of which each has its own. So only after 3.
// it is sure which texts were replaced, and by then another lane may have freed and taken their
// blocks (is_over). If they are not those that 2. knew, the lane reports once more, with what it
// finds in them. A gap is left: just 64 changes, or a multiple of them, between the last look at
// `signals` and 3., and the lane dies before it has reported again, or the one that made the last
// of them is not through. Then a checkpoint among them is lost, and the blocks of the last stay
// taken until they are mended.
//
// A lane that dies between 2 and 3 leaves blocks that stand in no text, between 3 and 4 the texts
// before: end_report() frees either. A job that ends between the lane's look and 3 may have a late
// report, which 5. takes back.

namespace ojs_shm::engine {

using shm::Blocks;
using shm::Point;

namespace {

struct ReportHead {
  std::uint64_t at_ms;
  std::uint64_t check;  ///< of the texts: blocks may be used again while they are read
  std::uint32_t message, data, checkpoint, unused;
};

/// One that does not say how far the job is leaves that as it was.
std::uint64_t parts_asked(const Report& report, std::uint64_t said) {
  if (report.fraction) return ReportWord::parts_of(*report.fraction);
  return report.has_texts ? std::max(said, ReportWord::parts_of(0)) : said;
}

/// The word of the blocks of the text that begins there; 0: none does.
std::uint64_t word_at(const shm::Segment& segment, std::uint32_t first_block) {
  return first_block < segment.geometry().blocks ? segment.block_word(first_block).load() : 0;
}

/// Takes what the report leaves out from texts that it has replaced without knowing them; `same`:
/// they are of its attempt. False: that is nothing. The report points into the texts then.
bool takes_over(Report& report, const ReportTexts& unknown, bool same) {
  const bool checkpoint = report.checkpoint.empty() && !unknown.checkpoint.empty();
  const bool texts = !report.has_texts && same && unknown.at_ms != 0;
  if (checkpoint) report.checkpoint = unknown.checkpoint;
  if (texts) report.has_texts = true, report.message = unknown.message, report.data = unknown.data;
  return checkpoint || texts;
}

std::uint64_t check_of(std::uint64_t at_ms, std::string_view texts) {
  return Store::hash_name(texts) ^ at_ms;
}

}  // namespace

std::uint64_t report_blocks(const shm::Segment& segment, std::uint32_t first_block,
                            std::uint32_t slot, std::uint32_t generation) {
  if (first_block >= segment.geometry().blocks) return 0;
  const std::uint64_t word = segment.block_word(first_block).load();
  return Blocks::is_made(word) && Blocks::is_of(word, slot, generation) ? word : 0;
}

std::string encode_report(const ReportTexts& texts) {
  const std::string all = texts.message + texts.data + texts.checkpoint;
  const ReportHead head{texts.at_ms,
                        check_of(texts.at_ms, all),
                        static_cast<std::uint32_t>(texts.message.size()),
                        static_cast<std::uint32_t>(texts.data.size()),
                        static_cast<std::uint32_t>(texts.checkpoint.size()),
                        0};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  return bytes += all;
}

std::optional<ReportTexts> read_report(const shm::Segment& segment, std::uint32_t first_block,
                                       std::uint32_t slot, std::uint32_t generation,
                                       std::uint64_t max_bytes) {
  const std::uint64_t word = report_blocks(segment, first_block, slot, generation);
  if (word == 0) return std::nullopt;
  ReportHead head;
  std::string bytes;
  Blocks::read(segment, first_block, word, sizeof head, bytes);
  if (bytes.size() != sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  const std::uint64_t size = std::uint64_t{head.message} + head.data + head.checkpoint;
  if (size > 2 * max_bytes) return std::nullopt;
  bytes.clear();
  Blocks::read(segment, first_block, word, sizeof head + size, bytes);
  if (bytes.size() != sizeof head + size) return std::nullopt;
  const std::string_view all = std::string_view(bytes).substr(sizeof head);
  if (check_of(head.at_ms, all) != head.check) return std::nullopt;
  return ReportTexts{head.at_ms, std::string(all.substr(0, head.message)),
                     std::string(all.substr(head.message, head.data)),
                     std::string(all.substr(head.message + head.data))};
}

void add_report(const Store& store, const JobRecord& job, bool texts, Snapshot& s) {
  for (unsigned look = 0; look < 64; ++look) {
    const ReportWord report(job.signals.load());  // PAIR report
    const bool own = report.is_of(s.attempt) && report.parts() != 0;
    if (own) s.fraction = static_cast<double>(report.parts() - 1) / 10'000;
    if (!texts || !report.has_texts()) return;
    if (auto found = read_report(store.segment(), report.first_block(), s.slot, s.generation,
                                 store.max_body())) {
      s.report = std::move(*found);
      if (!own) s.report = {.checkpoint = std::move(s.report.checkpoint)};
      return;
    }
  }
}

Outcome Holder::report(std::uint32_t slot, std::uint64_t word, const Report& report,
                       std::uint64_t& until) {
  JobRecord& job = store_.job(slot);
  if (report.message.size() + report.data.size() + report.checkpoint.size() > store_.max_body())
    return Outcome::kTooLarge;
  if (!move_lease(job, word, 0, Lease::kOnlyLonger, until)) return Outcome::kLost;
  const std::uint16_t attempt = job.attempt.get();
  for (ReportWord found(job.signals.load());;) {
    const bool same = found.is_of(attempt);
    const std::uint64_t said = same ? found.parts() : 0, asked = parts_asked(report, said);
    if (asked >= said &&
        (report.has_texts || !report.checkpoint.empty() || (found.has_texts() && !same)))
      return report_texts(slot, word, report);
    if (job.control.load() != word) return Outcome::kLost;
    if (said >= asked) return Outcome::kOk;
    const ReportWord next = found.with(asked, attempt, found.first_block());
    if (!job.signals.cas(found.word, next.word, Point::kProgressSet)) continue;
    if (job.control.load() != word) {  // it came too late: of the next attempt, or of another job
      job.signals.cas_once(next.word, next.withdrawn().word, Point::kProgressSet);
      return Outcome::kLost;
    }
    if (tellings_.on()) [[unlikely]]
      tellings_.held(EventKind::kJobProgress, job, Control(word), asked - 1);
    return Outcome::kOk;
  }
}

/// What stands with the job after the report, given what stands there now; nothing when other texts
/// stand there by now.
std::optional<ReportTexts> Holder::texts_after(const Report& report, ReportWord before,
                                               std::uint32_t slot) const {
  const JobRecord& job = store_.job(slot);
  ReportTexts texts;
  for (unsigned look = 0; before.has_texts() && look < 64; ++look) {
    if (auto read = read_report(segment_, before.first_block(), slot, job.generation.get(),
                                store_.max_body())) {
      texts = std::move(*read);
      break;
    }
    if (job.signals.load() != before.word) return std::nullopt;
  }
  if (report.has_texts)
    texts = {store_.now_ms(), std::string(report.message), std::string(report.data),
             std::move(texts.checkpoint)};
  else if (!before.is_of(job.attempt.get()))
    texts = {.checkpoint = std::move(texts.checkpoint)};
  if (!report.checkpoint.empty()) texts.checkpoint = report.checkpoint;
  return texts;
}

/// For a report with texts, or a report that removes those of another attempt.
[[gnu::noinline]] Outcome Holder::report_texts(std::uint32_t slot, std::uint64_t word,
                                               const Report& report) {
  JobRecord& job = store_.job(slot);
  const std::uint16_t attempt = job.attempt.get();
  const ReportWord before(job.signals.load());
  const std::uint64_t built_on = word_at(segment_, before.first_block());
  std::uint64_t blocks = slots_.texts().next_made_word(slot, job.generation.get());
  if (blocks == built_on) blocks = slots_.texts().next_made_word(slot, job.generation.get());
  self_.intent_data[ReportIntent::kOwnWord].set(blocks, Point::kIntentSet);
  self_.intent_data[ReportIntent::kOldWord].set(0, Point::kIntentSet);
  self_.intent_data[ReportIntent::kOldBlock].set(0, Point::kIntentSet);
  intend_bare(Op::kReport, job.queue.get(), slot);  // 1
  const std::optional<ReportTexts> texts = texts_after(report, before, slot);
  if (!texts) {
    intend_nothing();
    return report_texts(slot, word, report);
  }
  const std::uint32_t fresh =
      texts->empty() ? kNoIndex : slots_.write(blocks, encode_report(*texts));  // 2
  for (ReportWord found = before;;) {
    const bool same = found.is_of(attempt);
    const bool keeps = same && fresh == kNoIndex;
    const std::uint64_t said = same ? found.parts() : 0, parts = parts_asked(report, said);
    const std::uint32_t old = keeps ? kNoIndex : found.first_block();
    const std::uint64_t old_word = word_at(segment_, old);
    if (const ReportWord again(job.signals.load()); again.word != found.word) {
      found = again;
      continue;
    }
    const bool lost = job.control.load() != word;
    const bool known = found.has_texts_of(before) && (old == kNoIndex || old_word == built_on);
    if (!lost && !known) {
      end_report(slot, true);
      intend_nothing();
      return report_texts(slot, word, report);
    }
    if (lost || parts < said) {  // or another report came before it
      end_report(slot, true);
      intend_nothing();
      return lost ? Outcome::kLost : Outcome::kOk;
    }
    const ReportWord next = found.with(parts, attempt, keeps ? found.first_block() : fresh);
    self_.intent_data[ReportIntent::kOldBlock].set(old, Point::kIntentSet);
    self_.intent_data[ReportIntent::kOldWord].set(old_word, Point::kIntentSet);
    if (!job.signals.cas(found.word, next.word, Point::kProgressSet)) {  // 3 PAIR report
      self_.intent_data[ReportIntent::kOldWord].set(0, Point::kIntentSet);
      continue;
    }
    const std::uint64_t there = word_at(segment_, old);
    const bool late = job.control.load() != word;
    const std::uint64_t replaced =
        there == old_word || late || !is_over(slot, old, there) ? old_word : there;
    ReportTexts unknown;
    if (old != kNoIndex && replaced != built_on) [[unlikely]]
      unknown = read_report(segment_, old, slot, job.generation.get(), store_.max_body())
                    .value_or(ReportTexts());
    if (Blocks::is_made(replaced)) slots_.texts().free_made(old, replaced);  // 4
    if (late) end_report(slot, true);                                        // 5
    intend_nothing();
    if (late) return Outcome::kLost;
    if (Report more = report; takes_over(more, unknown, same)) [[unlikely]]
      return report_texts(slot, word, more);
    if (tellings_.on() && (report.fraction || report.has_texts)) [[unlikely]]
      tellings_.held(EventKind::kJobProgress, job, Control(word), parts - 1);
    return !texts->empty() && fresh == kNoIndex ? Outcome::kNoBlocks : Outcome::kOk;
  }
}

/// Whether that word, which was read where replaced texts began, is of texts that were the job's
/// and are no more, and not of what another lane has put there since.
bool Holder::is_over(std::uint32_t slot, std::uint32_t first, std::uint64_t word) {
  const JobRecord& job = store_.job(slot);
  return Blocks::is_of(word, slot, job.generation.get()) && !slots_.texts().is_being_made(word) &&
         ReportWord(job.signals.load()).first_block() != first;
}

/// The next attempt has the number of the attempt that is taken back, and begins without a report.
void Holder::withdraw_report(JobRecord& job) {
  const ReportWord found(job.signals.load());
  if (found.parts() != 0)
    job.signals.fetch_and(ReportWord(~0ULL).withdrawn().word, Point::kProgressSet);
}

/// Frees what this lane's report of the job left, which its intent names: after its death, or when
/// it came too late. A report of an attempt that has ended is taken back, all but its checkpoint;
/// one of the slot's next job is taken back whole.
void Holder::end_report(std::uint32_t slot, bool late) {
  JobRecord& job = store_.job(slot);
  const std::uint64_t blocks = self_.intent_data[ReportIntent::kOwnWord].get(),
                      old_word = self_.intent_data[ReportIntent::kOldWord].get();
  const auto old = static_cast<std::uint32_t>(self_.intent_data[ReportIntent::kOldBlock].get());
  if (!Blocks::is_made(blocks) || Blocks::slot_of(blocks) != slot) return;
  const auto is_ours = [&](ReportWord signals) {
    return signals.first_block() < segment_.geometry().blocks &&
           segment_.block_word(signals.first_block()).load() == blocks;
  };
  const unsigned state = Control(job.control.load()).state();
  const bool gone = state == kSlotFree || state == kSlotFilling ||
                    !Blocks::is_of(blocks, slot, job.generation.get());
  late = late || gone || state != kSlotActive;
  const auto taken_back = [gone](ReportWord signals) {
    return gone ? signals.withdrawn().without_texts() : signals.withdrawn();
  };
  ReportWord found(job.signals.load());
  while (late && is_ours(found) &&
         !job.signals.cas(found.word, taken_back(found).word, Point::kProgressSet)) {}
  found = ReportWord(job.signals.load());
  if (Blocks::is_made(old_word) && found.first_block() != old)
    slots_.texts().free_made(old, old_word);
  if (!is_ours(found)) slots_.texts().free_all_made(blocks);
}

}  // namespace ojs_shm::engine
