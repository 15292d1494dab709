// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/support/ledger.hpp"
#include "tests/support/storm/storm.hpp"

namespace ojs_shm::test {

/// What happened, for a person: numbers first, then each offence with the first notes about it.
std::string storm_report(const Subject& subject, const StormPlan& plan, const StormOutcome& outcome,
                         const LedgerVerdict& verdict, const Ledger& ledger);

/// Each kind of offence with its count and its first few notes; empty when there is none.
std::string offences_report(const Ledger& ledger);

}  // namespace ojs_shm::test
