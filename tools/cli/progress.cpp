// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include <ojs_shm/proxy.hpp>

#include "tools/cli/command.hpp"
#include "tools/cli/view.hpp"
#include "tools/shell/known_id.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {
namespace {

using shell::must;

struct ProgressOptions {
  double fraction = 0;
  std::string id, message, data, checkpoint;
  std::uint64_t fence = 0;
};

/// The job whose command this is a part of, and its attempt: a report of an attempt that is over
/// must not count for the next one.
void read_environment(ProgressOptions& options) {
  const char* id = std::getenv("OJS_JOB_ID");
  const char* fence = std::getenv("OJS_FENCE");
  if (id == nullptr || *id == '\0')
    shell::refuse(Code::kInvalid, "name the job: only a command of `work` has OJS_JOB_ID");
  options.id = id;
  if (options.fence != 0 || fence == nullptr) return;
  const char* end = fence + std::strlen(fence);
  if (std::from_chars(fence, end, options.fence).ptr != end)
    shell::refuse(Code::kInvalid, fmt::format("OJS_FENCE is not a number: {}", fence));
}

int progress(const Request& request, const ProgressOptions& given) {
  ProgressOptions options = given;
  if (options.id.empty()) read_environment(options);
  // A report that is refused leaves no checkpoint, either.
  if (!(options.fraction >= 0 && options.fraction <= 1))
    shell::refuse(Code::kInvalid, "progress is a number from 0 to 1");
  Proxy proxy = must(Proxy::attach(must(Segment::attach(request.where))));
  if (!options.checkpoint.empty())
    must(proxy.checkpoint(options.id, options.fence, options.checkpoint));
  const bool texts = !options.message.empty() || !options.data.empty();
  must(texts ? proxy.progress(options.id, options.fence, options.fraction, options.message,
                              options.data)
             : proxy.progress(options.id, options.fence, options.fraction));
  return shell::kExitOk;
}

}  // namespace

void add_progress_command(CLI::App& app, Request& request) {
  const auto [command, options] = add_command<ProgressOptions>(
      app, request, "progress", "Say how far an active job is, and renew its lease", &progress);
  command->add_option("FRACTION", options->fraction, "From 0 to 1")->required();
  command->add_option("ID", options->id, "The job (OJS_JOB_ID)")->transform(shell::known_id);
  command->add_option("-m,--message", options->message, "A text for people")->type_name("TEXT");
  command->add_option("--data", options->data, "More for programs")->type_name("JSON");
  command
      ->add_option("--checkpoint", options->checkpoint,
                   "What the next attempt finds in OJS_LAST_CHECKPOINT, should this one fail")
      ->type_name("JSON");
  command
      ->add_option("--fence", options->fence,
                   "Only for this attempt (the present one; OJS_FENCE beside OJS_JOB_ID)")
      ->type_name("N")
      ->check(kNotNegative);
  set_footer(*command,
             "\nA fraction below the last one changes nothing but the lease. A command of `work` "
             "need not name its job:\n"
             "\nEXAMPLES\n"
             "  ojs-shm work -- sh -c 'ojs-shm progress 0.5 -m \"half of it\"; ./the-rest'\n");
}

}  // namespace ojs_shm::cli
