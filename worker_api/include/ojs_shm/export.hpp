// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything else in the library is hidden.
#define OJS_SHM_API __attribute__((visibility("default")))
