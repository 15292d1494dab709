// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/service.hpp"

#include <exception>

#include "tools/shell/output.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::shell {

int run_service(std::string_view program, const std::function<int()>& run) {
  fill_closed_descriptors(true);  // a service may have no reader of READY
  try {
    const int exit_code = run();
    note_output();  // help and version are written by the parser
    const Status flushed = flush_output();
    if (exit_code == kExitOk) must(flushed);
    return exit_code;
  } catch (const Refusal& refusal) {
    say("{}: {}\n", program, refusal.error.message);
    return exit_code_for(refusal.error.code);
  } catch (const std::exception& problem) {
    say("{}: {}\n", program, problem.what());
    return kExitFailed;
  }
}

}  // namespace ojs_shm::shell
