// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/storm/subject.hpp"

namespace ojs_shm::test {

/// The whole of a storm program: reads the command line (--help lists it), rages, drains, judges,
/// prints the report. Returns the exit code: 0 when nothing was found, or with --must-break when
/// something was; 1 otherwise; 2 usage.
int storm_command(int argc, char** argv, void (*at_birth)(Lane&) = nullptr);

}  // namespace ojs_shm::test
