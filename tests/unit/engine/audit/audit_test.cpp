// SPDX-License-Identifier: Apache-2.0
// Each invariant has a number. Here one word is corrupted by hand at a time, and the audit must
// name its number.

#include <set>
#include <type_traits>
#include <vector>

#include "engine/audit/audit.hpp"
#include "engine/bounds/account_look.hpp"
#include "engine/limits/limits.hpp"
#include "engine/tables/job_look.hpp"
#include "engine/workers/registry.hpp"
#include "shm/blocks.hpp"
#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {
namespace {

using engine::Control;
using shm::Point;

/// Puts a word back when it goes, so that the segment is whole again at the end.
template <class T>
class Corrupted {
 public:
  Corrupted(shm::Atomic<T>& word, std::type_identity_t<T> value)
      : word_(word), before_(word.load()) {
    word_.store(value, Point::kNone);
  }
  ~Corrupted() { word_.store(before_, Point::kNone); }

 private:
  shm::Atomic<T>& word_;
  T before_;
};
template <class T>
class CorruptedPlain {
 public:
  CorruptedPlain(shm::Plain<T>& word, std::type_identity_t<T> value)
      : word_(word), before_(word.get()) {
    word_.set(value);
  }
  ~CorruptedPlain() { word_.set(before_); }

 private:
  shm::Plain<T>& word_;
  T before_;
};

class Audit : public testing::Test {
 protected:
  Audit() {
    available = slot_of(s.put(2));
    JobSpec later = spec_of(2);
    later.scheduled_at_ms = s.now_ms() + kHour;
    scheduled = slot_of(s.put(later));
    const std::string args = "[\"" + std::string(1000, 'x') + "\"]";
    JobSpec big = spec_of(3);
    big.args = args;
    large = slot_of(s.put(big));
    JobSpec own = spec_of(4);
    own.id = "01961234-5678-7abc-8def-0123456789ab";
    brought = slot_of(s.put(own));
    s.put(0);
    active = slot_of(s.take());
    s.put(0);
    finished = slot_of(s.take());
    EXPECT_TRUE(s.worker.ack(s.job).ok());
    EXPECT_EQ(s.findings(), "");
  }
  std::uint32_t slot_of(const std::string& id) {
    return engine::find_job(s.store(), *engine::parse_id(id));
  }
  engine::JobRecord& job(std::uint32_t slot) { return s.store().job(slot); }
  Control control(std::uint32_t slot) { return Control(job(slot).control.load()); }
  shm::Segment& raw() { return s.segment.attachment()->segment(); }
  std::set<std::uint32_t> found() {
    std::set<std::uint32_t> numbers;
    for (const engine::Finding& finding : engine::audit(s.store()))
      numbers.insert(finding.invariant);
    return numbers;
  }
  engine::QueueRecord& queue() { return s.store().queue(s.store().find_queue("default")); }
  std::uint32_t ring() { return shm::Rings::find(queue().rings, engine::normal_ring(2)); }
  shm::Chunk& chunk() { return raw().chunk(shm::Place(raw().ring(ring()).head.load()).chunk()); }

  QuietSegment s;
  std::uint32_t available = 0, scheduled = 0, large = 0, brought = 0, active = 0, finished = 0;
};

TEST_F(Audit, I01_a_state_that_does_not_exist_or_an_owner_where_none_belongs) {
  {
    const Corrupted word(job(finished).control, Control(engine::kSlotPending, 0, 1, 1).word);
    EXPECT_TRUE(found().contains(1));
  }
  {
    const Corrupted word(job(scheduled).control,
                         control(scheduled).word | Control::OwnerBits::put(1));
    EXPECT_TRUE(found().contains(1));
  }
  const Corrupted word(
      job(active).control,
      Control(engine::kSlotActive, control(active).ring(), 0, control(active).tag()).word);
  EXPECT_TRUE(found().contains(1));
}

TEST_F(Audit, I27_a_workflow_without_a_graph_and_a_job_that_waits_for_none) {
  for (const unsigned state : {engine::kSlotHead, engine::kSlotWaiting}) {
    const Corrupted word(job(finished).control, Control(state, 0, 0, 1).word);
    EXPECT_TRUE(found().contains(27));
  }
}

TEST_F(Audit, I25_two_jobs_of_one_key_that_mind_each_other) {
  UniquePolicy at_work;
  at_work.args = true;
  at_work.states = 1U << static_cast<unsigned>(State::kActive);
  const JobUnique unique = JobUnique::of(spec_of(), at_work).value();
  JobSpec spec = spec_of();
  spec.unique = &unique;
  const std::uint32_t elder = slot_of(s.put(spec)), younger = slot_of(s.put(spec));
  EXPECT_FALSE(found().contains(25));
  const std::uint64_t all =
      engine::Uniqueness::make(engine::Uniqueness::kLive, engine::OnConflict::kReject, false, 0)
          .word;
  const CorruptedPlain one(job(younger).annex().uniqueness, all);
  EXPECT_FALSE(found().contains(25)) << "the other may have come for its key behind it";
  const CorruptedPlain both(job(elder).annex().uniqueness, all);
  EXPECT_TRUE(found().contains(25));
}

TEST_F(Audit, I02_a_slot_held_by_a_lane_that_nobody_has) {
  const Corrupted word(
      job(active).control,
      Control(engine::kSlotActive, control(active).ring(), 31, control(active).tag()).word);
  EXPECT_TRUE(found().contains(2));
}

TEST_F(Audit, I03_an_available_job_without_a_hint) {
  const Corrupted word(
      job(available).control,
      Control(engine::kSlotAvailable, control(available).ring(), 0, control(available).tag() + 5)
          .word);
  EXPECT_TRUE(found().contains(3));
}

TEST_F(Audit, I04_a_ring_with_jobs_whose_index_bit_is_clear) {
  const Corrupted word(queue().rings.index[0],
                       queue().rings.index[0].load() & ~(1ULL << engine::normal_ring(2)));
  EXPECT_EQ(found(), (std::set<std::uint32_t>{4}));
}

TEST_F(Audit, I05_a_ring_that_leads_astray) {
  const shm::Place head(raw().ring(ring()).head.load());
  {
    const Corrupted word(raw().ring(ring()).head,
                         shm::Place(head.chunk(), head.cell(), head.incarnation() + 1).word);
    EXPECT_TRUE(found().contains(5));
  }
  {
    const Corrupted word(raw().ring(ring()).head,
                         shm::Place(0xFF'FFFE, 0, head.incarnation()).word);
    EXPECT_TRUE(found().contains(5));
  }
  const std::uint32_t other = shm::Rings::find(queue().rings, engine::normal_ring(3));
  const Corrupted word(raw().ring(ring()).tail, raw().ring(other).tail.load());
  EXPECT_TRUE(found().contains(5));
}

TEST_F(Audit, I06_a_chunk_that_is_free_and_linked_or_linked_to_nothing) {
  const std::uint64_t incarnation = shm::ChunkControl(chunk().control.load()).incarnation();
  {
    const Corrupted word(chunk().control,
                         shm::ChunkControl(shm::ChunkState::kFree, 0, incarnation).word);
    EXPECT_TRUE(found().contains(6));
  }
  for (std::uint32_t i = 0; i < raw().geometry().chunks; ++i) {
    const shm::ChunkControl free(raw().chunk(i).control.load());
    if (free.state() != shm::ChunkState::kFree) continue;
    for (const shm::ChunkState state :
         {shm::ChunkState::kLinked, shm::ChunkState::kBatched, shm::ChunkState::kSpare}) {
      const Corrupted word(raw().chunk(i).control,
                           shm::ChunkControl(state, 0, free.incarnation()).word);
      EXPECT_EQ(found(), (std::set<std::uint32_t>{6}));
    }
    break;
  }
}

TEST_F(Audit, I07_a_ring_with_two_names_or_none) {
  {
    const Corrupted word(queue().rings.ring[engine::normal_ring(9)], ring() + 1);
    EXPECT_TRUE(found().contains(7));
  }
  {
    const Corrupted word(queue().rings.ring[engine::normal_ring(9)], 1'000'000U);
    EXPECT_TRUE(found().contains(7));
  }
  const Corrupted word(raw().ring(raw().geometry().rings - 1).claimed, shm::kNoIndex);
  EXPECT_EQ(found(), (std::set<std::uint32_t>{7}));
}

TEST_F(Audit, I08_a_block_that_is_not_its_jobs_or_nobodys) {
  const std::uint32_t first = job(large).body_block.get();
  {
    const Corrupted word(raw().block_word(first), std::uint64_t{0});
    EXPECT_TRUE(found().contains(8));
  }
  const std::uint32_t last = raw().geometry().blocks - 1;
  ASSERT_EQ(raw().block_word(last).load(), 0U);
  const Corrupted word(raw().block_word(last),
                       shm::Blocks::word_of(available, job(available).generation.get()));
  EXPECT_EQ(found(), (std::set<std::uint32_t>{8}));
}

TEST_F(Audit, I09_lengths_that_cannot_be) {
  {
    const CorruptedPlain word(job(available).type_args, std::uint32_t{0xFF'FFFF});
    EXPECT_TRUE(found().contains(9));
  }
  const Corrupted word(raw().block_link(job(large).body_block.get()), shm::kNoIndex);
  EXPECT_TRUE(found().contains(9));
}

TEST_F(Audit, I10_a_depth_that_is_not_the_number_of_the_waiting) {
  engine::QueueTally& tally = s.store().tally(s.store().find_queue("default"), 0);
  const std::uint64_t before = tally.in.get();
  tally.in.set(before + engine::charge(1, 0), Point::kTallyIn);
  EXPECT_EQ(found(), (std::set<std::uint32_t>{10}));
  tally.in.set(before, Point::kTallyIn);
}

TEST_F(Audit, I11_a_reservation_that_no_lane_made) {
  const Corrupted word(queue().reserved, queue().reserved.load() + engine::charge(1, 0));
  EXPECT_EQ(found(), (std::set<std::uint32_t>{11}));
}

TEST_F(Audit, I12_a_queue_that_does_not_exist_or_has_anothers_name) {
  {
    const CorruptedPlain word(job(available).queue, std::uint16_t{7});
    EXPECT_TRUE(found().contains(12));
  }
  const std::uint64_t before = queue().name[0];
  queue().name[0] = before + 1;
  EXPECT_EQ(found(), (std::set<std::uint32_t>{12}));
  queue().name[0] = before;
}

TEST_F(Audit, I13_an_id_that_leads_elsewhere) {
  {
    const CorruptedPlain word(job(available).id_lo, job(available).id_lo.get() ^ 1);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{13}));
  }
  for (std::uint32_t i = 0; i < raw().geometry().key_cells; ++i) {
    if (raw().key_cell(i).load() == 0) continue;
    const Corrupted word(raw().key_cell(i), std::uint64_t{0});
    EXPECT_EQ(found(), (std::set<std::uint32_t>{13}));
  }
}

TEST_F(Audit, I14_a_sleeper_that_nobody_is) {
  const Corrupted word(queue().waiters[15], 1ULL << 63);
  EXPECT_EQ(found(), (std::set<std::uint32_t>{14}));
}

TEST_F(Audit, I14_settings_that_nobody_writes) {
  const Corrupted word(queue().settler, 20);
  EXPECT_EQ(found(), (std::set<std::uint32_t>{14}));
}

TEST_F(Audit, I15_a_lane_of_no_process_or_in_the_middle_of_something) {
  shm::Lane& unused = raw().lane(raw().geometry().lanes - 1);
  {
    const Corrupted word(unused.process, 9U);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{15}));
  }
  unused.intent.set(1, Point::kIntentSet);
  EXPECT_EQ(found(), (std::set<std::uint32_t>{15}));
  unused.intent.set(0, Point::kIntentCleared);
}

TEST_F(Audit, I16_a_job_without_the_time_it_needs) {
  {
    const CorruptedPlain word(job(scheduled).due_at, std::uint64_t{0});
    EXPECT_EQ(found(), (std::set<std::uint32_t>{16}));
  }
  {
    const CorruptedPlain word(job(finished).finished_at, std::uint64_t{0});
    EXPECT_EQ(found(), (std::set<std::uint32_t>{16}));
  }
  const Corrupted word(job(active).deadline, job(active).deadline.load() ^ 1);
  EXPECT_EQ(found(), (std::set<std::uint32_t>{16}));
}

TEST_F(Audit, I17_a_page_that_belongs_to_no_level_or_lane) {
  shm::Word& owner = s.store().wait_pages[s.store().wait_pages.size() - 1].owner;
  for (const std::uint64_t word :
       {engine::WaitOwner(1, 1, engine::WaitOwner::key_of(7, 2)).word, std::uint64_t{1} << 40,
        engine::WaitOwner(1, 1000, engine::WaitOwner::key_of(0, 2)).word}) {
    const Corrupted corrupted(owner, word);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{17}));
  }
  const std::uint32_t page = 5;
  for (const std::uint64_t word :
       {engine::EventPageControl(raw().geometry().lanes - 1, 5).word,
        engine::EventPageControl(0, 6).closed().word,
        engine::EventPageControl(0, 5 + s.store().event_pages.size()).closed().word}) {
    const Corrupted corrupted(s.store().event_controls[page], word);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{17}));
  }
}

TEST_F(Audit, I20_a_flow_in_line_that_nothing_leads_to) {
  shm::Word& control = s.store().flows[0].control;
  (void)s.actor().rings().ensure_unindexed(s.store().flows[0].ring);
  EXPECT_EQ(found(), std::set<std::uint32_t>{});
  const Corrupted corrupted(control, engine::FlowControl(engine::FlowControl::kListed, 0, 1).word);
  EXPECT_EQ(found(), (std::set<std::uint32_t>{20}));
}

class AuditOfLimits : public Audit {
 protected:
  AuditOfLimits() {
    const JobLimit limit{"k", {.concurrency = 1}};
    JobSpec spec = spec_of(1);
    spec.limit = &limit;
    working = slot_of(s.put(spec));
    parked = slot_of(s.put(spec));
    EXPECT_TRUE(s.worker.try_fetch(s.job).ok());
    std::vector<Job> rest(2);
    for (Job& job : rest) EXPECT_TRUE(s.worker.try_fetch(job).ok());  // past the second of the key
    EXPECT_EQ(s.findings(), "");
  }
  engine::LimitKey& key() { return s.store().limit_keys[engine::find_limit(s.store(), "k")]; }
  shm::Word& permit(std::uint32_t i) { return engine::Permits(s.store()).at(key().permits, i); }
  std::uint32_t working = 0, parked = 0;
};

TEST_F(AuditOfLimits, I18_a_permit_of_nobody_or_work_without_one) {
  const engine::Permit held(permit(0).load());
  {
    const Corrupted word(permit(0), held.word ^ 1ULL << 16);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{18, 19}));
  }
  {
    const Corrupted word(permit(0), std::uint64_t{0});
    EXPECT_EQ(found(), (std::set<std::uint32_t>{18, 19}));
  }
  ASSERT_TRUE(s.admin.set_limit("k", {.concurrency = 2}).ok());
  const Corrupted word(permit(1), held.word);
  EXPECT_TRUE(found().contains(18));
}

TEST_F(AuditOfLimits, I19_a_job_in_a_lot_without_a_reason) {
  {
    const CorruptedPlain word(job(parked).limits, engine::with_second(job(parked).limits.get(), 3));
    EXPECT_TRUE(found().contains(19));
  }
  const Corrupted word(key().permits.limit, std::uint64_t{0});
  EXPECT_EQ(found(), (std::set<std::uint32_t>{19}));
}

TEST_F(AuditOfLimits, I14_limits_that_nobody_sets) {
  const Corrupted word(s.store().header().limit_settler, 20);
  EXPECT_EQ(found(), (std::set<std::uint32_t>{14}));
}

TEST_F(Audit, I21_a_queue_with_a_job_that_is_said_to_be_quiet) {
  const std::uint32_t q = s.store().find_queue("default");
  shm::Word& word = s.store().busy_word(q);
  const Corrupted corrupted(word, engine::BusyWord::with(word.load(), q, engine::BusyWord::kQuiet));
  EXPECT_EQ(found(), (std::set<std::uint32_t>{21}));
}

TEST_F(Audit, I30_maintenance_that_nobody_changes_and_a_queue_that_does_not_follow) {
  {
    const Corrupted settler(s.store().header().maintainer, 30);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{30}));
  }
  const Corrupted flags(queue().flags, queue().flags.load() | engine::kMaintained);
  EXPECT_EQ(found(), (std::set<std::uint32_t>{30}));
}

TEST_F(Audit, I22_pools_that_nobody_changes_and_a_queue_that_no_pool_isolates) {
  {
    const Corrupted settler(s.store().header().pools_settler, 30);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{22}));
  }
  const Corrupted isolated(queue().flags, queue().flags.load() | engine::kIsolated);
  EXPECT_EQ(found(), (std::set<std::uint32_t>{22}));
}

TEST_F(Audit, I23_an_account_that_holds_what_nothing_waits_for) {
  ASSERT_TRUE(s.admin.set_queue("default", {.tenant_max_depth = 1000}).ok());
  const std::uint32_t at = engine::find_account(s.store(), engine::mix_key(0, 0));
  engine::AccountRecord& account = s.store().accounts[at];
  {
    const Corrupted mark(job(available).account,
                         job(available).account.load() | engine::AccountMark::kGivenBack);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{23}));
  }
  {
    const Corrupted key(account.key, 5);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{23}));
  }
  {
    const Corrupted reserved(account.reserved, account.reserved.load() + 1);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{23}));
  }
  {
    const Corrupted closed(account.reserved, account.reserved.load() | engine::kAccountClosed);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{23}));
  }
  const Corrupted seat(s.store().header().account_seat, 30);
  EXPECT_EQ(found(), (std::set<std::uint32_t>{14}));
}

TEST_F(Audit, I24_an_entry_of_the_ids_that_leads_elsewhere) {
  std::uint32_t cell = 0;
  while (raw().key_cell(cell).load() == 0) ++cell;
  const std::uint64_t entry = raw().key_cell(cell).load();
  const std::uint64_t of_another_slot =
      shm::Field<38, 24>::put(finished) | shm::Field<0, 38>::get(entry) | 1ULL << 62;
  for (const std::uint64_t wrong : {std::uint64_t{entry ^ 1}, of_another_slot}) {
    const Corrupted<std::uint64_t> also(raw().key_cell(cell + 1), wrong);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{24}));
    EXPECT_EQ(s.admin.mend().code(), Code::kOk);
    EXPECT_EQ(found(), std::set<std::uint32_t>{});
  }
}

TEST_F(Audit, names_no_more_than_a_thousand_findings_and_only_what_stays) {
  EXPECT_EQ(engine::audit_patiently(s.store()), std::vector<engine::Finding>{});
  const Corrupted word(queue().waiters[15], 1ULL << 63);
  EXPECT_EQ(engine::audit_patiently(s.store()), engine::audit(s.store()));
}

TEST_F(Audit, I29_a_worker_that_stands_twice_or_is_written_by_nobody) {
  using engine::WorkerControl, engine::WorkerPhase, engine::WorkerSign;
  std::vector<std::uint32_t> places;
  for (const char* id : {"one", "two"}) {
    engine::WorkerKey key;
    ASSERT_EQ(engine::Registry(s.actor()).report({.id = id, .pledges = true}, key),
              engine::Outcome::kOk);
    places.push_back(key.place());
  }
  ASSERT_EQ(found(), std::set<std::uint32_t>{});
  engine::WorkerMark& mark = s.store().worker_marks[places[0]];
  const WorkerControl alive(mark.control.load());
  const std::uint32_t free_lane = raw().geometry().lanes;  // plus one
  for (const WorkerControl wrong :
       {alive.to(WorkerPhase::kChanging, 0), alive.to(WorkerPhase::kChanging, free_lane),
        alive.to(WorkerPhase::kAlive, s.actor().lane() + 1),
        alive.to(static_cast<WorkerPhase>(7), 0)}) {
    const Corrupted word(mark.control, wrong.word);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{29})) << wrong.word;
  }
  {
    const Corrupted word(mark.sign, WorkerSign(s.now_ms(), alive.life() + 1).word);
    EXPECT_EQ(found(), (std::set<std::uint32_t>{29}));
  }
  std::uint64_t(&id)[16] = s.store().workers[places[1]].id;
  const std::uint64_t before = id[0];
  id[0] = s.store().workers[places[0]].id[0];
  EXPECT_EQ(found(), (std::set<std::uint32_t>{29}));
  id[0] = before;
}

TEST_F(Audit, a_lost_hint_and_a_leaked_chunk_are_mended) {
  const Control before = control(available);
  job(available).control.store(
      Control(engine::kSlotAvailable, before.ring(), 0, before.tag() + 5).word, Point::kNone);
  for (std::uint32_t i = 0; i < raw().geometry().chunks; ++i) {
    const shm::ChunkControl free(raw().chunk(i).control.load());
    if (free.state() != shm::ChunkState::kFree) continue;
    raw().chunk(i).control.store(
        shm::ChunkControl(shm::ChunkState::kLinked, 0, free.incarnation()).word, Point::kNone);
    break;
  }
  EXPECT_EQ(found(), (std::set<std::uint32_t>{3, 6}));
  EXPECT_GE(s.admin.mend().value(), 2U);
  EXPECT_EQ(found(), std::set<std::uint32_t>{});
  EXPECT_EQ(slot_of(s.take()), available);
}

}  // namespace
}  // namespace ojs_shm::test
