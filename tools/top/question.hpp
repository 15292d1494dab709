// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tools/top/options.hpp"

namespace ojs_shm::top {

/// A change that waits for a yes, or for a value and Enter.
struct Question {
  std::string text;
  bool wants_value = false;
  std::string value = {};
  std::function<std::string(const std::string&)> change = {};  ///< returns what to tell
};

/// What a key of --admin asks at this row; nothing when it means nothing there. `row` is its key.
std::optional<Question> question_of(const Options& options, View view, const Subject& subject,
                                    char key, const std::string& row);

}  // namespace ojs_shm::top
