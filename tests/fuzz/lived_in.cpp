// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/lived_in.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>

#include <fstream>
#include <functional>
#include <iterator>

#include "shm/atomics.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/surroundings.hpp"
#include "worker_api/attachment.hpp"

namespace ojs_shm::fuzz {
namespace {

using internal::Attachment;

struct Inhabitant {
  Segment segment;
  Producer producer;
  Worker worker;
  Admin admin;
  Job held;

  static Inhabitant move_in() {
    SegmentOptions options;
    options.slots = 96;
    options.max_queues = 3;
    options.max_body_bytes = 16'384;
    options.max_handles = 8;
    // As a broker, for a member would start a thread that looks after the segment.
    auto made = Attachment::create(segment_name(), options, Attachment::Role::kBroker);
    require(made.ok(), made.ok() ? "" : made.error().message);
    Segment segment = Segment::of(*made);
    WorkerOptions both;
    both.queues = {"default", "bounded"};
    return {segment, *Producer::attach(segment), *Worker::attach(segment, both), *Admin::attach(segment), {}};
  }

  std::string enqueue(int n) {
    JobSpec spec;
    const std::string args = "[\"" + std::string(static_cast<std::size_t>(n) * 31 % 900, 'x') + "\"]";
    spec.type = n % 2 == 0 ? "fuzz.even" : "fuzz.odd";
    spec.args = args;
    spec.priority = n % 7;
    if (n % 4 == 3) spec.queue = "bounded";
    if (n % 10 == 0) spec.scheduled_at_ms = 4'000'000'000'000;
    if (n % 10 == 4) spec.expires_at_ms = 4'000'000'000'000;
    spec.pending = n % 10 == 5;
    spec.lease_ms = n % 10 == 6 ? 50 : 0;
    spec.retry.max_attempts = n % 3 == 0 ? 1 : 3;
    spec.retry.dead_letter = n % 2 == 0;
    const std::string id = "0199461a-0000-7000-8000-0000000000" + std::to_string(10 + n);
    if (n % 9 == 1) spec.id = id;
    const auto made = producer.enqueue(spec);
    require(made.ok(), made.ok() ? "" : made.error().message);
    return made->str();
  }

  void live() {
    QueueSettings bounds;
    bounds.max_depth = 40;
    require(admin.set_queue("bounded", bounds).ok(), "a queue was refused");
    require(admin.set_default_priority("fuzz.even", 3).ok(), "a default was refused");
    require(admin.set_events(true).ok(), "events were refused");
    std::vector<std::string> ids;
    for (int n = 0; n < 70; ++n) ids.push_back(enqueue(n));
    (void)producer.cancel(ids[2]);
    (void)producer.reprioritize(ids[7], 0);
    Job job;
    for (int n = 0; n < 36; ++n) {
      require(worker.try_fetch(job).ok(), "nothing was there");
      if (n % 6 <= 2) (void)worker.ack(job, "[1, \"a result that does not fit into nothing\"]");
      if (n % 6 == 3) (void)worker.nack(job, {.message = "it failed"});
      if (n % 6 == 4) (void)worker.requeue(job);
    }
    require(worker.try_fetch(held).ok(), "nothing was there");
  }
};

/// What it is at when it is killed, half of its writes done.
using LastAct = std::function<void(Inhabitant&)>;
const LastAct kLastActs[] = {
    [](Inhabitant& one) { one.enqueue(71); },
    [](Inhabitant& one) { (void)one.worker.try_fetch(one.held); },
    [](Inhabitant& one) { (void)one.worker.ack(one.held, "[\"done\"]"); },
    [](Inhabitant& one) { (void)one.worker.nack(one.held, {.message = "it failed again"}); },
    [](Inhabitant& one) {
      const JobSpec specs[] = {{.type = "fuzz.batch"}, {.type = "fuzz.batch"}, {.type = "fuzz.batch"}};
      (void)one.producer.enqueue_batch(specs);
    },
    [](Inhabitant& one) {
      JobFilter waiting;
      waiting.state = State::kAvailable;
      (void)one.producer.reprioritize(Observer::attach(one.segment)->list(waiting).back().id, 50);
    },
};

thread_local int writes = 0, last_write = 0;

void on_write(shm::Access access, shm::Point, const void*) {
  if (access == shm::Access::kWritten && ++writes == last_write) ::_exit(0);
}

/// A child makes the segment and lives in it. Returns its exit code: the number of writes of its last act, or 0 when
/// it was killed at `die_at`.
int inhabit(const LastAct* last, int die_at) {
  begin_run();
  ::unlink(internal::path_of(segment_name()).c_str());
  const pid_t child = ::fork();
  require(child >= 0, "no child");
  if (child == 0) {
    {
      Inhabitant one = Inhabitant::move_in();
      one.live();
      last_write = die_at;
      shm::thread_hook = on_write;
      if (last != nullptr) (*last)(one);
      shm::thread_hook = nullptr;
    }
    ::_exit(writes);
  }
  int status = 0;
  require(::waitpid(child, &status, 0) == child && WIFEXITED(status), "the inhabitant failed");
  return WEXITSTATUS(status);
}

Image make_image(const LastAct* last) {
  const int all_writes = inhabit(last, 0);
  if (last != nullptr)
    require(all_writes > 1 && inhabit(last, all_writes / 2) == 0,
            "the inhabitant was not killed; its act has " + std::to_string(all_writes));
  Image image;
  const auto seen = Observer::attach(segment_name());
  require(seen.ok(), "the image is no segment");
  for (const JobInfo& job : seen->list({})) image.ids.push_back(job.id);
  std::ifstream file(internal::path_of(segment_name()), std::ios::binary);
  image.bytes.assign(std::istreambuf_iterator<char>(file), {});
  return image;
}

}  // namespace

const SegmentName& segment_name() {
  static const auto* name = new SegmentName{"fuzz", scratch()};
  return *name;
}

const std::vector<Image>& images() {
  static const auto* all = [] {
    auto* made = new std::vector<Image>{make_image(nullptr)};
    for (const LastAct& last : kLastActs) made->push_back(make_image(&last));
    return made;
  }();
  return *all;
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.flush();
  require(file.good(), "cannot write " + path);
}

}  // namespace ojs_shm::fuzz
