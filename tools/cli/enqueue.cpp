// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <string>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/envelope_stream.hpp"
#include "tools/cli/finish.hpp"
#include "tools/cli/on_full.hpp"
#include "tools/cli/submission.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/output.hpp"
#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

constexpr const char* kBlockTimeout = "--block-timeout";

struct Options {
  SubmissionFlags job;
  bool wait = false, strict = false;
  std::string wait_timeout, block_timeout, on_full;
  CLI::App* command = nullptr;
};

EnqueueOptions patience_of(const Options& options) {
  EnqueueOptions patience;
  if (!options.block_timeout.empty())
    patience.block_timeout = shell::wait_of(options.block_timeout);
  return patience;
}

/// Enqueues by the rules of --on-full; what is in the local buffer at the end of its time was
/// refused.
std::string enqueue_by(const OnFull& on_full, Producer& producer, const JobSpec& job) {
  ResilientProducer resilient(must(Producer::attach(producer.segment())), on_full.options);
  const auto receipt = must(resilient.enqueue(job));
  if (receipt.buffered) {
    (void)on_full.options.buffer->flush(on_full.flush);
    for (const UnsentJob& unsent : on_full.options.buffer->close())
      throw shell::Refusal{unsent.error};
  }
  return receipt.id.str();
}

int enqueue_one(const Request& request, const Options& options, Producer& producer) {
  const Envelope envelope = envelope_of(options.job, must(Observer::attach(producer.segment())));
  must(check_supported(envelope));
  const OnFull on_full = on_full_of(options.on_full, producer.segment());
  const std::string id = options.on_full.empty()
                             ? must(producer.enqueue(envelope.spec(), patience_of(options))).str()
                             : enqueue_by(on_full, producer, envelope.spec());
  if (options.wait || !options.wait_timeout.empty()) {
    return wait_and_print(producer, id, options.wait_timeout, request.json);
  }
  if (request.json) {
    // a fast worker and a short retention may have finished with it already
    const auto job = producer.get(id);
    std::string text = job ? print_job(job.value())
                           : object([&](json::ObjectWriter& writer) { writer.text("id", id); });
    if (producer.deduplicated()) text.insert(text.size() - 1, ",\"deduplicated\":true");
    print_line(text);
  } else {
    print_line(id);
  }
  if (const Status flushed = shell::flush_output(); !flushed)
    shell::refuse(flushed.code(),
                  fmt::format("job {} is stored, but {}", id, flushed.error().message));
  return shell::kExitOk;
}

int enqueue(const Request& request, const Options& options) {
  if (!options.job.type.empty()) {
    await_segment(request, kPatience);
    Producer producer = must(Producer::attach(request.where));
    return enqueue_one(request, options, producer);
  }
  for (const CLI::Option* option : options.command->get_options()) {
    if (option->count() != 0 && option->get_name() != kBlockTimeout &&
        option->get_name() != "--on-full" && option->get_name() != "--strict")
      shell::refuse(Code::kInvalid, option->get_name() + " describes one job and needs --type");
  }
  if (::isatty(STDIN_FILENO) == 1) {
    shell::refuse(Code::kInvalid, "give --type, or one envelope in each line of standard input");
  }
  await_segment(request, kPatience);
  Producer producer = must(Producer::attach(request.where));
  const bool strict =
      options.strict ||
      must(Observer::attach(producer.segment())).segment_settings().strict_envelopes;
  if (options.on_full.empty())
    return EnvelopeStream(producer, STDIN_FILENO, request.json, strict, patience_of(options)).run();
  const OnFull on_full = on_full_of(options.on_full, producer.segment());
  return EnvelopeStream(producer, STDIN_FILENO, request.json, strict, {}, &on_full).run();
}

/// Of one job, in the order of the help.
struct TextFlag {
  const char* flag;
  std::string SubmissionFlags::*text;
  const char *what, *type;
};
using S = SubmissionFlags;
constexpr TextFlag kTextFlags[] = {
    {"-t,--type", &S::type, "Job type, such as email.send", "TYPE"},
    {"-i,--input", &S::input, "JSON: an array is the args, anything else their only element ([])",
     "JSON"},
    {"--queue", &S::queue, "Queue (default)", "Q"},
    {"--priority", &S::priority,
     "A number, or a name of the segment's convention (the type's default)", "N|NAME"},
    {"--id", &S::id, "A UUIDv7 of your own (made)", "ID"},
    {"--delay", &S::delay, "Not before this time has passed, such as 30s", "TIME"},
    {"--at", &S::at, "Not before this moment, RFC 3339", "MOMENT"},
    {"--expires", &S::expires,
     "Discard it when it did not run by then: RFC 3339, or a time from now", "MOMENT"},
    {"--timeout", &S::timeout, "Longest run of one attempt (none)", "TIME"},
    {"--grace-period", &S::grace_period, "What an attempt has beyond --timeout before it is ended",
     "TIME"},
    {"--enqueue-ttl", &S::enqueue_ttl,
     "Discard it when no attempt has begun so long after its creation", "TIME"},
    {"--total-timeout", &S::total_timeout,
     "Discard it when it has not ended so long after its creation, over all attempts", "TIME"},
    {"--lease", &S::lease, "How long a worker may be silent (the segment's, 30m)", "TIME"},
    {"--result-ttl", &S::result_ttl,
     "How long its result is kept after its end: a time such as 1h, 0 not to store it,\n"
     "never for no limit (as long as the job)",
     "TIME"},
    {"--retry", &S::retry,
     "max_attempts=3,backoff=exponential|linear|constant|polynomial,initial=1s,\n"
     "max=5m,coefficient=2,jitter=true,on_exhaustion=discard|dead_letter",
     "POLICY"},
    {"--meta", &S::meta, "A JSON object that stays with the job", "JSON"},
    {"--rate-limit", &S::rate_limit,
     "KEY, then what it allows: concurrency=N, rate=N/PERIOD, throttle=N/PERIOD,\n"
     "on_limit=wait|reschedule|drop; such as api,concurrency=5",
     "LIMIT"},
    {"--unique", &S::unique,
     "One job at a time of this type and of the same queue, args, meta as named here\n"
     "(such as args,queue), or a policy as a JSON object",
     "KEYS"},
    {"--unique-args", &S::unique_args, "Of args count these members of its objects alone", "NAMES"},
    {"--unique-meta", &S::unique_meta, "Of meta count these members", "NAMES"},
    {"--unique-period", &S::unique_period,
     "A job keeps others out for so long from its creation (without end)", "TIME"},
    {"--unique-states", &S::unique_states,
     "States in which another is in the way (those that are not final)", "STATES"},
    {"--on-conflict", &S::on_conflict,
     "reject, ignore, replace or replace_except_schedule (reject)", "WHAT"},
};

}  // namespace

void add_enqueue_command(CLI::App& app, Request& request) {
  const auto [command, options] = add_command<Options>(
      app, request, "enqueue", "Enqueue a job, or one for each line of standard input; prints ids",
      &enqueue);
  command->alias("submit");
  options->command = command;
  SubmissionFlags& job = options->job;
  for (const TextFlag& flag : kTextFlags)
    command->add_option(flag.flag, job.*flag.text, flag.what)->type_name(flag.type);
  command
      ->add_option("--priority-age-rate", job.priority_age_rate,
                   "Levels by which it rises in each ageing interval, 0 to 255 (its queue's)")
      ->type_name("N")
      ->check(kNotNegative);
  command->add_flag("--raise-priority", job.raise_priority,
                    "A refused duplicate gives its priority to the other, if it is higher");
  command->add_flag("--pending", job.pending, "Wait for `activate`");
  command
      ->add_option(
          "--on-full", options->on_full,
          "When the queue is full: retry=N times after the recommended pause, doubled up to "
          "max=60s;\n"
          "breaker=N refusals in a row, then not asked for cooldown=10s; buffer=N jobs in memory,\n"
          "waited for at the end for flush=60s")
      ->type_name("POLICY");
  command->add_flag(
      "--strict", options->strict,
      "Refuse a line with a member that means nothing, such as max_attemps (as the segment says)");
  command->add_flag("--wait", options->wait,
                    "Wait for its end and print its result, as `wait` does");
  command->add_option("--wait-timeout", options->wait_timeout, "As --wait, for at most this time")
      ->type_name("TIME");
  command
      ->add_option(kBlockTimeout, options->block_timeout,
                   "Wait for so long for room in a full queue whose strategy is block (0); not "
                   "with --on-full")
      ->excludes("--on-full")
      ->type_name("TIME");
  set_footer(*command,
             "\nWithout --type each line of standard input is an envelope, such as\n"
             "  "
             "{\"type\":\"file.hash\",\"args\":[\"/etc/"
             "fstab\"],\"priority\":1,\"retry\":{\"max_attempts\":5}}\n"
             "A line that is refused is reported with its number, the others go on, and the status "
             "is 1.\n");
}

}  // namespace ojs_shm::cli
