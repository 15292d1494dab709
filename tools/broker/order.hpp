// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/broker/settings.hpp"

namespace ojs_shm::broker {

/// What the file says of the order within queues, once the convention is known and before a segment
/// is made: puts what [worker] says into `aging`, and refuses with file and line what no segment of
/// that convention takes. Errors: kInvalid.
Status settle_order(Settings& settings);

}  // namespace ojs_shm::broker
