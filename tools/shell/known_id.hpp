// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ojs_shm::shell {

/// An id of a job or a workflow as the segment knows it, in lower case: a command that reads one
/// takes digits of both cases (RFC 9562, 4). Any other text comes back as it is.
std::string known_id(std::string text);

}  // namespace ojs_shm::shell
