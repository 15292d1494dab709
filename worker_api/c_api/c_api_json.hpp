// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>

/// What an observer saw, as the JSON texts of the C ABI. Members only ever get added; times are RFC
/// 3339.
namespace ojs_shm::c_api {

std::string print(const SegmentInfo& segment);
std::string print(const QueueInfo& queue);
std::string print(const std::vector<QueueInfo>& queues);
std::string print(const std::vector<JobInfo>& jobs);
/// Of a fetch: each with the fence of its attempt before all else.
std::string print_fetched(const std::vector<JobInfo>& jobs);
std::string print(const std::vector<Violation>& violations);
std::string print(const std::vector<Transition>& transitions);
std::string print(const std::vector<LimitInfo>& limits);
std::string print(const std::vector<SegmentFile>& files);

}  // namespace ojs_shm::c_api
