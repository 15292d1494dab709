// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/target.hpp"

#include <spdlog/fmt/fmt.h>

namespace ojs_shm::shell {

CLI::Option* add_target_options(CLI::App& app, SegmentName& where) {
  where = segment_name_from_environment();
  auto* name =
      app.add_option("--name", where.name, "The segment's name [OJS_SHM_NAME, else \"default\"]");
  name->type_name("N");
  app.add_option("--dir", where.dir, "The directory its files are in [OJS_SHM_DIR, else /dev/shm]")
      ->type_name("D");
  return name;
}

std::string version_text(std::string_view program) {
  return fmt::format("{} {} (segment format {})", program, library_version(), segment_format());
}

std::string exit_code_help() {
  return "EXIT STATUS\n"
         "  0 done   1 failed   2 wrong usage or argument   3 cannot attach, in use, other format "
         "or convention\n"
         "  4 not found   5 wrong state   6 full (queue, segment or file system)   7 no "
         "permission\n";
}

}  // namespace ojs_shm::shell
