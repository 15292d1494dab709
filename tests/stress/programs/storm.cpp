// SPDX-License-Identifier: Apache-2.0
// The SIGKILL storm against what ships; tools/dev/lanes/crash.sh runs it.
#include "tests/support/storm/storm_command.hpp"

int main(int argc, char** argv) { return ojs_shm::test::storm_command(argc, argv); }
