// SPDX-License-Identifier: Apache-2.0
#include "tools/shell/meant_flag.hpp"

#include <spdlog/fmt/fmt.h>

#include "tools/shell/nearest.hpp"

namespace ojs_shm::shell {

std::string meant(std::string_view word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = nearest(word, views);
  return near.empty() ? "" : fmt::format("; did you mean `{}`?", near);
}

const CLI::App& last_chosen(const CLI::App& app) {
  const CLI::App* last = &app;
  for (auto chosen = last->get_subcommands(); !chosen.empty(); chosen = last->get_subcommands())
    last = chosen.front();
  return *last;
}

std::string meant_flag(const CLI::App& app) {
  const CLI::App& command = last_chosen(app);
  std::vector<std::string> names;
  for (const CLI::App* each : {&command, &app})
    for (const CLI::Option* option : each->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (const std::string& word : app.remaining(true))
    if (word.starts_with("--")) return meant(word.substr(0, word.find('=')), names);
  return {};
}

}  // namespace ojs_shm::shell
