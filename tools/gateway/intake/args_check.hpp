// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/gateway/intake/schema_book.hpp"
#include "worker_api/json/envelope.hpp"

namespace ojs_shm::gateway {

/// A job whose `meta.ojs_validate` is true wants its args held against the schema of its type, or
/// the schema that the job names. Throws a Fault (422) when they do not fit, and when there is no
/// such schema: nothing could call them valid. Source: ojs-middleware 3.6 and 3.7.
void check_args(const SchemaBook& schemas, const Envelope& envelope);

}  // namespace ojs_shm::gateway
