// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstring>

#include "worker_api/c_api/c_api_json.hpp"
#include "worker_api/c_api/c_api_structs.hpp"
#include "worker_api/json/workflow_text.hpp"
#include "worker_api/roles/attachment.hpp"

namespace {

using namespace ojs_shm::c_api;

std::uint64_t now_of(const ojs_shm::Segment& segment) {
  return segment.attachment()->store().now_ms();
}

}  // namespace

extern "C" {

int ojs_shm_create_workflow(ojs_shm_producer* producer, const char* json, size_t json_size,
                            char* id) {
  return entry(producer, [&](Record& record) -> int {
    const auto read =
        ojs_shm::parse_workflow(text_or(json, json_size, "{}"), now_of(producer->object.segment()));
    if (!read) return record.fail(read.error());
    const auto made = producer->object.create_workflow(read->spec);
    if (!made) return record.fail(made.error());
    if (id != nullptr) std::memcpy(id, made->c_str(), made->size() + 1);
    return OJS_SHM_OK;
  });
}

int ojs_shm_cancel_workflow(ojs_shm_producer* producer, const char* id) {
  return entry(producer, [&](Record& record) -> int {
    const auto cancelled = producer->object.cancel_workflow(text(id, "id"));
    return cancelled ? int{OJS_SHM_OK} : record.fail(cancelled.error());
  });
}

int64_t ojs_shm_workflow(ojs_shm_observer* observer, const char* id, char* buffer, size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    const auto workflow = observer->object.workflow(text(id, "id"));
    return workflow ? record.give(ojs_shm::print_workflow(workflow.value()), buffer, size)
                    : record.fail(workflow.error());
  });
}

int64_t ojs_shm_workflows(ojs_shm_observer* observer, const char* state, char* buffer,
                          size_t size) {
  return entry(observer, [&](Record& record) -> int64_t {
    ojs_shm::WorkflowFilter filter;
    for (const auto each : {ojs_shm::WorkflowState::kRunning, ojs_shm::WorkflowState::kCompleted,
                            ojs_shm::WorkflowState::kFailed, ojs_shm::WorkflowState::kCancelled})
      if (state != nullptr && ojs_shm::workflow_state_name(each) == state) filter.state = each;
    if (state != nullptr && !filter.state) wrong_argument("state", "is not a workflow's state");
    std::string all = "[";
    for (const auto& workflow : observer->object.workflows(filter))
      all += (all.size() > 1 ? "," : "") + ojs_shm::print_workflow(workflow);
    return record.give(all + "]", buffer, size);
  });
}

int64_t ojs_shm_parent_results(const ojs_shm_job* job, char* buffer, size_t size) {
  return entry(job, [&](Record& record) -> int64_t {
    return record.give(job->object.parent_results(), buffer, size);
  });
}

int64_t ojs_shm_workflow_id(const ojs_shm_job* job, char* buffer, size_t size) {
  return entry(job, [&](Record& record) -> int64_t {
    return record.give(job->object.workflow_id(), buffer, size);
  });
}

}  // extern "C"
