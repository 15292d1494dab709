// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>

namespace ojs_shm::cli {

/// Waits for the end of a job, prints its result (with `json` the whole job), and answers by its
/// state: 0 completed, 1 discarded (its last error goes to stderr), 5 cancelled. `timeout` empty:
/// for ever; when it passes, throws.
int wait_and_print(Producer& producer, const std::string& id, const std::string& timeout,
                   bool json);
/// The same for a user that may only look.
int watch_and_print(const Segment& segment, const std::string& id, const std::string& timeout,
                    bool json);

}  // namespace ojs_shm::cli
