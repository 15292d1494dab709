// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include <ojs_shm/admin.hpp>

#include "worker_api/roles/attachment.hpp"

namespace ojs_shm {

struct Admin::Impl {
  std::unique_ptr<internal::Handle> handle;
  std::optional<Producer> producer;
};

}  // namespace ojs_shm
