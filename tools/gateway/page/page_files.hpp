// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace ojs_shm::gateway {

/// A file of the dashboard, as tools/gateway/dashboard/packed has it, and the same in gzip's form.
struct PageFile {
  std::string_view name, text, gzip;
};

/// The build makes its source from those files.
std::span<const PageFile> page_files();

}  // namespace ojs_shm::gateway
