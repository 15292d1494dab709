// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ojs_shm::shell {

/// The name that a misspelt one was probably meant to be: the name that the fewest insertions,
/// removals, replacements and swaps of neighbours lead to, at most a third of its letters and at
/// least one. Empty when none is that near.
std::string nearest(std::string_view word, std::span<const std::string_view> names);

}  // namespace ojs_shm::shell
