// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker_api/json/envelope_export.hpp"
#include "worker_api/json/envelope_fields.hpp"
#include "worker_api/json/envelope_json.hpp"

// What an export says of how far a job is: `progress`, `progress_message`, `progress_at`, and
// `progress_data`, or `progress_data_text` where that is not JSON; and its `last_checkpoint`.

namespace ojs_shm::internal {

void write_exported_progress(json::ObjectWriter& writer, const JobInfo& job);
void take_exported_progress(ExportedJob& exported, const json::Member& member,
                            json::Complaint& complaint);

}  // namespace ojs_shm::internal
