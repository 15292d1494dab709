// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command.hpp"

#include <unistd.h>

#include <thread>

#include "tools/shell/quantity.hpp"
#include "tools/shell/refusal.hpp"

namespace ojs_shm::cli {

void await_segment(const Request& request, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kLook{10};
  if (!request.attach_timeout.empty()) patience = shell::wait_of(request.attach_timeout);
  const std::string file = request.where.dir + "/ojs-shm." + request.where.name;
  // The file gets its name when all of it is ready.
  while (::access(file.c_str(), F_OK) != 0 &&
         std::chrono::steady_clock::now() - request.begun < patience) {
    std::this_thread::sleep_for(kLook);
  }
}

void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) shell::refuse(Code::kInvalid, option->get_name() + " is empty");
    }
  }
}

}  // namespace ojs_shm::cli
