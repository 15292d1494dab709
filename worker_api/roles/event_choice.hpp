// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/events.hpp>

namespace ojs_shm::internal {

/// Whether the text is wanted; where nothing is named, everything is.
bool is_among(const std::vector<std::string>& wanted, std::string_view text);
/// The same, where "job.*" names all that begin with "job.".
bool begins_among(const std::vector<std::string>& wanted, std::string_view text);

/// Whether a reader with these options gives it out.
bool is_chosen(const Event& event, const EventOptions& options);

}  // namespace ojs_shm::internal
