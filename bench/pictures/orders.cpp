// SPDX-License-Identifier: Apache-2.0
//
// The same arrivals under each order of a queue, on a segment whose clock is moved by hand: prints,
// separated by tabs, the order, the minute of a dispatch, the job's priority and how many minutes
// it has waited.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <ojs_shm/admin.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/worker.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "worker_api/roles/attachment.hpp"

namespace {

using namespace ojs_shm;

constexpr int kArrivals[] = {6, 3, 2, 1};  // of each level in each minute
constexpr int kDispatches = 10;            // in each minute
constexpr int kMinutes = 90;
constexpr std::uint64_t kMinuteMs = 60'000;

template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

void run(const char* order, const std::string& settings) {
  const SegmentName name{"orders." + std::to_string(::getpid()), "/dev/shm"};
  {
    const Segment segment = must(Segment::create(name, {}));
    shm::Word& clock = segment.attachment()->segment().header().clock_offset_ms;
    Admin admin = must(Admin::attach(segment));
    if (const Status set = admin.set_queue("default", must(parse_queue_settings(settings)));
        !set.ok())
      throw std::runtime_error(set.error().message);
    Producer producer = must(Producer::attach(segment));
    Worker worker = must(Worker::attach(segment, {}));
    JobSpec spec;
    spec.type = "picture.dot";
    Job job;
    for (int minute = 0; minute < kMinutes; ++minute) {
      const std::string args = "[" + std::to_string(minute) + "]";
      spec.args = args;
      for (std::int64_t level = 0; level < 4; ++level)
        for (int i = 0; i < kArrivals[level]; ++i) {
          spec.priority = level;
          must(producer.enqueue(spec));
        }
      for (int i = 0; i < kDispatches && worker.try_fetch(job).ok(); ++i) {
        const int since = std::stoi(std::string(job.args()).substr(1));
        std::printf("%s\t%d\t%lld\t%d\n", order, minute, static_cast<long long>(job.priority()),
                    minute - since);
        if (const Status done = worker.ack(job); !done.ok())
          throw std::runtime_error(done.error().message);
      }
      clock.fetch_add(kMinuteMs, shm::Point::kNone);
    }
  }
  (void)remove_segment(name, Removal::kForced);
}

}  // namespace

int main() {
  try {
    run("strict", "{}");
    run("aged", R"({"aging":{"interval":"PT5M"}})");
    run("weighted", R"({"level_weights":{"0":5,"1":2,"2":2,"3":1}})");
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
  return 0;
}
