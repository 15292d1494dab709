// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ojs_shm/workflow.hpp>

#include "tests/unit/engine/quiet_segment.hpp"

namespace ojs_shm::test {

inline WorkflowSpec job_of(std::string_view type, std::string_view queue = {}) {
  WorkflowSpec part;
  part.job.type = type;
  part.job.queue = queue;
  return part;
}

inline WorkflowSpec of_kind(WorkflowKind kind, std::vector<WorkflowSpec> steps) {
  WorkflowSpec spec;
  spec.kind = kind;
  spec.steps = std::move(steps);
  return spec;
}
inline WorkflowSpec chain(std::vector<WorkflowSpec> steps) {
  return of_kind(WorkflowKind::kChain, std::move(steps));
}
inline WorkflowSpec group(std::vector<WorkflowSpec> steps) {
  return of_kind(WorkflowKind::kGroup, std::move(steps));
}
inline WorkflowSpec batch(std::vector<WorkflowSpec> steps) {
  WorkflowSpec spec = of_kind(WorkflowKind::kBatch, std::move(steps));
  spec.on_complete = {job_of("on.complete")};
  spec.on_success = {job_of("on.success")};
  spec.on_failure = {job_of("on.failure")};
  return spec;
}
inline WorkflowSpec step(std::string_view name, std::vector<std::string_view> after) {
  WorkflowSpec part = job_of("step");
  part.name = name;
  part.depends_on = std::move(after);
  return part;
}

class Workflows : public testing::Test {
 protected:
  std::string create(const WorkflowSpec& spec) {
    const auto id = s.producer.create_workflow(spec);
    EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
    return id.ok() ? *id : std::string();
  }
  WorkflowInfo look(std::string_view id) const {
    const auto info = s.observer.workflow(id);
    EXPECT_TRUE(info.ok()) << id;
    return info.ok() ? *info : WorkflowInfo{};
  }
  /// The type of the next job, which is acked with that result; "" when there is none.
  std::string ack(std::string_view result = "null") {
    if (!s.worker.try_fetch(s.job)) return {};
    const std::string type(s.job.type());
    EXPECT_TRUE(s.worker.ack(s.job, result).ok());
    return type;
  }
  std::string fail() {
    if (!s.worker.try_fetch(s.job)) return {};
    const std::string type(s.job.type());
    EXPECT_TRUE(s.worker.nack(s.job, failure(false)).ok());
    return type;
  }
  std::vector<std::string> run_all() {
    std::vector<std::string> types;
    for (std::string type = ack(); !type.empty(); type = ack()) types.push_back(type);
    return types;
  }
  Code refused(const WorkflowSpec& spec, std::string* subject = nullptr) {
    const auto id = s.producer.create_workflow(spec);
    if (id.ok()) return Code::kOk;
    if (subject != nullptr) *subject = id.error().subject;
    return id.error().code;
  }
  QuietSegment s;
};

using Types = std::vector<std::string>;

}  // namespace ojs_shm::test
