// SPDX-License-Identifier: Apache-2.0
// The basic operations, as a process calls them.

#include "tests/catalogue/basic_operations.hpp"
#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::string_view kBrought = "01990000-0000-7000-8000-000000000001",
                           kBesideAnother = "01990000-0000-7000-8000-000000000002";

class ProcessCaller final : public Caller {
 public:
  explicit ProcessCaller(Hands& hands) : hands_(hands) {}

  unsigned own(unsigned number) const override { return 6 + number; }

  void put(unsigned job, std::uint8_t rank) override {
    hands_.ids[job] = hands_.put(spec_for(job, rank));
  }
  void put_batch(unsigned first, std::uint8_t rank) override {
    const JobSpec specs[] = {spec_for(first, rank), spec_for(first + 1, rank)};
    for (const JobIdText& id : must(hands_.producer->enqueue_batch(specs)))
      if (hands_.accepted) hands_.accepted(id.str());
  }
  void bring(unsigned job) override { (void)enqueue_under(kBrought, job, 3); }
  void put_again() override {
    if (enqueue_under(kBrought, 17, 0)) throw std::runtime_error("a duplicate was accepted");
  }
  void bring_beside(unsigned job) override { (void)enqueue_under(kBesideAnother, job, 1); }

  void take() override {
    const Status fetched = hands_.worker->try_fetch(hands_.job);
    if (fetched.code() != Code::kEmpty) must(fetched);
  }
  void take_finish_twice() override {
    std::vector<Job> jobs = must(hands_.worker->fetch_batch(2));
    for (Job& job : jobs) must(hands_.worker->ack(job));
  }
  void finish() override {
    if (hands_.job.valid()) must(hands_.worker->ack(hands_.job));
  }
  void give_back() override {
    if (hands_.job.valid()) must(hands_.worker->requeue(hands_.job));
  }
  void leave() override { not_mine(); }
  void fail() override {
    if (hands_.job.valid())
      must(hands_.worker->nack(hands_.job, {.code = "boom", .retryable = false}));
  }
  void beat() override {
    if (!hands_.job.valid()) return;
    must(hands_.worker->heartbeat(hands_.job, 36'000'000));
    must(hands_.worker->progress(hands_.job, 0.5));
  }

  void cancel(unsigned job) override { must(hands_.producer->cancel(hands_.ids.at(job))); }
  void move(unsigned job, std::uint8_t rank) override {
    must(hands_.producer->reprioritize(hands_.ids.at(job), rank));
  }

  void close_levels() override { not_mine(); }
  void pack() override { not_mine(); }
  void tend() override { not_mine(); }

 private:
  [[noreturn]] static void not_mine() { throw std::logic_error("no process calls this by itself"); }

  static JobSpec spec_for(unsigned job, std::uint8_t rank) {
    static const std::string large = "[\"" + std::string(600, 'b') + "\"]";
    JobSpec spec = job == 9 ? spec_of(large) : spec_of();
    spec.priority = rank;
    return spec;
  }
  /// False: another has that id.
  bool enqueue_under(std::string_view id, unsigned job, std::uint8_t rank) {
    JobSpec spec = spec_for(job, rank);
    spec.id = id;
    const Result<JobIdText> answer = hands_.producer->enqueue(spec);
    if (answer.code() == Code::kDuplicate) return false;
    must(answer);
    if (hands_.accepted) hands_.accepted(std::string(id));
    return true;
  }

  Hands& hands_;
};

}  // namespace

std::vector<Operation> plain_operations() {
  std::vector<Operation> all;
  for (const BasicOperation& basic : basic_operations())
    if (*basic.not_by_processes == '\0')
      all.push_back({basic.name,
                     [](Hands& hands) {
                       ProcessCaller caller(hands);
                       let_three_wait(caller);
                     },
                     [&basic](Hands& hands) {
                       ProcessCaller caller(hands);
                       basic.act(caller);
                     }});
  return all;
}

}  // namespace ojs_shm::test
