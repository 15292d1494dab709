// SPDX-License-Identifier: Apache-2.0
// Whatever a file holds: attaching to it, looking at it and working in it end with an answer. Each
// file gets a child of its own; a signal, a hang or a failed assertion in there is a failure, a
// wrong answer is not.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>

#include "engine/tables/layout.hpp"
#include "tests/environment/segment_fixture.hpp"
#include "tests/support/seed.hpp"

namespace ojs_shm::test {
namespace {

class HostileFiles : public SegmentFixture {
 protected:
  static std::size_t below(Seeded& seeded, std::size_t bound) { return seeded.bits() % bound; }
  std::string path() const { return scratch.path() + "/ojs-shm." + name.name; }

  void write(const std::string& bytes) const {
    std::ofstream file(path(), std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(file.good());
  }
  std::string read() const {
    std::ifstream file(path(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  /// A segment in the middle of its life: jobs in every state, two queues, a dead holder that
  /// no process repaired.
  std::string lived_in_segment() {
    create();
    Forked inhabitant([this](Parent& parent) {
      auto producer = Producer::attach(name);
      auto worker = Worker::attach(name, {});
      Job job;
      for (int n = 0; n < 60; ++n) {
        JobSpec spec = job_spec();
        spec.priority = n % 7;
        spec.scheduled_at_ms = n % 10 == 0 ? 4'000'000'000'000 : 0;
        spec.pending = n % 10 == 1;
        if (n % 10 == 2) spec.queue = "other";
        const std::string body = "[\"" + std::string(static_cast<std::size_t>(n) * 8, 'x') + "\"]";
        spec.args = body;
        if (const auto id = producer->enqueue(spec); !id.ok())
          return parent.tell(id.error().message), 1;
      }
      for (int n = 0; n < 20; ++n) {
        if (const Status got = worker->try_fetch(job); !got.ok())
          return parent.tell(got.error().message), 1;
        if (n % 3 == 0) (void)worker->ack(job, "[1]");
        if (n % 3 == 1) (void)worker->nack(job, {});
      }
      parent.tell("done");
      for (;;) ::pause();
      return 0;
    });
    EXPECT_EQ(inhabitant.listen().value_or("(silence)"), "done");
    inhabitant.signal(SIGKILL);
    inhabitant.wait();
    return read();
  }

  /// What a stranger who finds the file might do with it.
  static int visit(const SegmentName& where, Parent& parent) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    if (auto seen = Observer::attach(where); seen.ok()) {
      (void)seen->segment_info();
      (void)seen->queues();
      (void)seen->audit();
      for (const JobInfo& job : seen->list({})) (void)seen->get(job.id);
    }
    auto segment = Segment::attach(where);
    parent.tell(code_name(segment.code()));
    if (!segment.ok()) return segment.error().message.empty() ? 4 : 0;
    auto producer = Producer::attach(*segment);
    auto worker = Worker::attach(*segment, {});
    auto admin = Admin::attach(*segment);
    if (!producer.ok() || !worker.ok() || !admin.ok()) return 0;
    (void)admin->repair();
    (void)admin->mend();
    Job job;
    for (int n = 0; n < 40; ++n) {
      if (const auto id = producer->enqueue(job_spec()); id.ok() && n % 4 == 0)
        (void)producer->cancel(id->view());
      if (!worker->try_fetch(job).ok()) continue;
      if (n % 2 == 0)
        (void)worker->ack(job, "[2]");
      else
        (void)worker->nack(job, {});
    }
    (void)worker->fetch(job, std::chrono::milliseconds(1));
    return 0;
  }

  /// Keeps looking at tables that a process writes to.
  static int look_on(const SegmentName& where) {
    auto seen = Observer::attach(where);
    if (!seen.ok()) return 0;
    for (int n = 0; n < 10; ++n) {
      (void)seen->segment_info();
      (void)seen->queues();
      (void)seen->audit();
      for (const JobInfo& job : seen->list({})) (void)seen->get(job.id);
    }
    return 0;
  }

  /// Runs one visit; returns what attach said.
  std::string expect_an_end(const std::string& what) {
    Forked visitor([this](Parent& parent) { return visit(name, parent); });
    const int code = visitor.wait();
    EXPECT_EQ(code, 0) << what << (code == -1 ? ": hung" : code > 128 ? ": died of a signal" : "");
    return visitor.listen().value_or("");
  }
};

TEST_F(HostileFiles, random_bytes_of_any_length_are_refused) {
  Seeded seeded;
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    std::string bytes(below(seeded, 200'000), '\0');
    for (char& byte : bytes) byte = static_cast<char>(seeded.bits());
    write(bytes);
    const std::string said = expect_an_end("random file " + std::to_string(round));
    EXPECT_TRUE(said == "cannot_attach" || said == "other_format") << said;
  }
}

TEST_F(HostileFiles, a_truncated_segment_is_refused) {
  Seeded seeded;
  const std::string whole = lived_in_segment();
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    const std::size_t length = below(seeded, whole.size());
    write(whole.substr(0, length));
    EXPECT_EQ(expect_an_end("cut at " + std::to_string(length)), "cannot_attach");
  }
}

TEST_F(HostileFiles, a_segment_without_room_for_the_queues_it_names_is_refused) {
  const std::string whole = lived_in_segment();
  shm::Header header;
  std::memcpy(static_cast<void*>(&header), whole.data(), sizeof header);
  const std::size_t at =
      shm::offsets_of(header.geometry).area + offsetof(engine::EngineHeader, max_queues);
  for (const std::uint32_t queues : {0U, 1000U, ~0U}) {
    std::string broken = whole;
    std::memcpy(broken.data() + at, &queues, sizeof queues);
    write(broken);
    EXPECT_EQ(expect_an_end(std::to_string(queues) + " queues"), "cannot_attach");
  }
}

TEST_F(HostileFiles, flipped_bits_never_crash_a_visitor) {
  Seeded seeded;
  const std::string whole = lived_in_segment();
  // The bytes that mean something: a flip in a page of zeros is worth less.
  std::vector<std::size_t> used;
  for (std::size_t at = 0; at < whole.size(); ++at)
    if (whole[at] != 0) used.push_back(at);
  ASSERT_FALSE(used.empty());
  for (int round = 0; round < 600 && !HasFailure(); ++round) {
    std::string broken = whole;
    std::string where;
    for (std::int64_t flips = seeded.between(1, 8); flips > 0; --flips) {
      const bool header = seeded.between(0, 3) == 0;
      const std::size_t at = header ? below(seeded, 8192) : used[below(seeded, used.size())];
      broken[at] = static_cast<char>(broken[at] ^ (1 << seeded.between(0, 7)));
      where += " " + std::to_string(at);
    }
    write(broken);
    expect_an_end("flipped bytes" + where);
  }
}

TEST_F(HostileFiles, random_words_in_its_tables_never_crash_a_visitor) {
  Seeded seeded;
  const std::string whole = lived_in_segment();
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    std::string broken = whole;
    // The first page stays, so that the visitor gets past the door.
    const std::size_t from = (4096 + below(seeded, whole.size() - 8192)) & ~std::size_t{7};
    const std::size_t words = 1 + below(seeded, 512);
    for (std::size_t at = from; at < from + words * 8 && at < broken.size(); ++at)
      broken[at] = static_cast<char>(seeded.bits());
    write(broken);
    expect_an_end("random words from " + std::to_string(from) + ", " + std::to_string(words));
  }
}

TEST_F(HostileFiles, a_scribbler_never_crashes_an_observer) {
  Seeded seeded;
  const std::string whole = lived_in_segment();
  std::vector<std::size_t> used;  // words that mean something
  for (std::size_t at = 4096; at + 8 <= whole.size(); at += 8)
    if (whole.compare(at, 8, std::string(8, '\0')) != 0) used.push_back(at);
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    write(whole);
    const std::uint64_t seed = seeded.bits();
    const Forked scribbler([&](Parent&) {
      std::mt19937_64 numbers(seed);
      for (const int fd = ::open(path().c_str(), O_RDWR | O_CLOEXEC);;) {
        const bool any = numbers() % 3 == 0;
        const std::uint64_t word = numbers();
        const char* bytes =
            any ? reinterpret_cast<const char*>(&word) : whole.data() + used[word % used.size()];
        if (::pwrite(fd, bytes, 8, static_cast<off_t>(used[numbers() % used.size()])) != 8)
          return 1;
      }
    });
    Forked observer([this](Parent&) { return look_on(name); });
    EXPECT_EQ(observer.wait(), 0) << "round " << round;
  }
}

TEST_F(HostileFiles, what_is_no_file_is_refused) {
  ASSERT_EQ(::mkdir(path().c_str(), 0700), 0);
  EXPECT_EQ(expect_an_end("a directory"), "cannot_attach");
  ASSERT_EQ(::rmdir(path().c_str()), 0);
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(expect_an_end("a fifo"), "cannot_attach");
  ASSERT_EQ(::unlink(path().c_str()), 0);
  ASSERT_EQ(::symlink("/nonexistent", path().c_str()), 0);
  EXPECT_EQ(expect_an_end("a dangling link"), "cannot_attach");
}

}  // namespace
}  // namespace ojs_shm::test
