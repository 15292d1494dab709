// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/gateway/streams/event_stream.hpp"

namespace ojs_shm::gateway {

/// The last change of a job that has ended, as an event. Source: ojs-realtime 2.1.
Told end_of(Desk& desk, const JobInfo& job);

/// All that happens to a job. One that has ended when the client comes tells its last change, if
/// the filter lets changes pass.
JobStream events_of_job(std::string job, const EventFilter& filter);
/// How far a job is, and how it ends.
JobStream progress_of_job(std::string job);

}  // namespace ojs_shm::gateway
