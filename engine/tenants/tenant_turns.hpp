// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/fetch/look.hpp"
#include "engine/fetch/search.hpp"
#include "engine/tenants/tenant_line.hpp"

// Tenants that share a queue across its levels: the tenant that has the turn gives the best of its
// jobs, and a level counts among the jobs of one tenant only. Beside the flows of their levels
// (flows.cpp) all tenants with jobs are in one line of the queue, each by a flow without jobs that
// names the tenant. That line decides which tenant is next, and nothing else. A tenant whose turn
// was lost by a death, and a job for which there is no flow, are served when no other tenant has a
// turn, and the supervisor puts such tenants back in line.

namespace ojs_shm::engine {

struct TenantTurns {
  Search& search;
  Store& store;

  /// The best job of the tenant whose turn it is. False when no tenant has a turn.
  bool look(QueueRecord& queue, Search::Look& look, std::uint32_t& left, Search::Live& best);
  /// After that job has been taken.
  void end(QueueRecord& queue, std::uint32_t turn, std::uint64_t weight);

 private:
  bool best_of(QueueRecord& queue, std::uint64_t tenant, Search::Look& look, std::uint32_t& left,
               Search::Live& best);
  bool first_at(QueueRecord& queue, std::uint64_t tenant, const Search::Look::Seen& part,
                unsigned number, Search::Look& look, std::uint32_t& left, Search::Live& live);
  bool has_none(QueueRecord& queue, std::uint64_t tenant) const;
};

}  // namespace ojs_shm::engine
