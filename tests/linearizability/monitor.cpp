// SPDX-License-Identifier: Apache-2.0
#include "tests/linearizability/monitor.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

namespace ojs_shm::test {
namespace {

/// Instants at which something better was certainly in the queue: open intervals, apart from each
/// other.
class Cover {
 public:
  struct Piece {
    std::uint64_t from, to;
  };
  /// The first instant from `at` on that is free.
  std::uint64_t free_from(std::uint64_t at) const {
    const Piece* piece = around(at);
    return piece == nullptr ? at : piece->to;
  }
  /// The last free instant up to `at`.
  std::uint64_t free_until(std::uint64_t at) const {
    const Piece* piece = around(at);
    return piece == nullptr ? at : piece->from;
  }
  void add(std::vector<Piece> more) {
    more.insert(more.end(), pieces_.begin(), pieces_.end());
    std::sort(more.begin(), more.end(),
              [](const Piece& a, const Piece& b) { return a.from < b.from; });
    pieces_.clear();
    for (const Piece& piece : more)
      // two that only touch leave one instant free
      if (!pieces_.empty() && piece.from < pieces_.back().to)
        pieces_.back().to = std::max(pieces_.back().to, piece.to);
      else
        pieces_.push_back(piece);
  }

 private:
  const Piece* around(std::uint64_t at) const {
    auto next = std::lower_bound(pieces_.begin(), pieces_.end(), at,
                                 [](const Piece& piece, std::uint64_t t) { return piece.to <= t; });
    return next != pieces_.end() && next->from < at ? &*next : nullptr;
  }
  std::vector<Piece> pieces_;
};

struct Life {
  const Operation* in = nullptr;
  const Operation* out = nullptr;
  /// of its fetch, once better levels are taken into account
  std::uint64_t earliest = kNever, latest = kNever;
};

/// 1. a job that certainly came in before another of its level must not certainly go out after it
std::optional<std::string> overtaken(std::vector<Life*>& level, std::uint64_t origin) {
  std::vector<Life*> by_return = level;
  std::sort(level.begin(), level.end(),
            [](const Life* a, const Life* b) { return a->in->call < b->in->call; });
  std::sort(by_return.begin(), by_return.end(),
            [](const Life* a, const Life* b) { return a->in->returned < b->in->returned; });
  const Life* last_out = nullptr;  // of those that came in before the one we look at
  auto before = by_return.begin();
  for (const Life* job : level) {
    for (; before != by_return.end() && (*before)->in->returned < job->in->call; ++before)
      if (last_out == nullptr || (*before)->earliest > last_out->earliest) last_out = *before;
    if (last_out == nullptr || last_out->earliest <= job->latest) continue;
    return fmt::format(
        "job {} overtook job {} of its level\n  {}\n  {}\n  {}\n  {}", job->in->job,
        last_out->in->job, describe(*last_out->in, origin), describe(*job->in, origin),
        describe(*job->out, origin),
        last_out->out == nullptr ? "and was never fetched" : describe(*last_out->out, origin));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> monitor(const History& history) {
  std::array<Life, kMostJobs> lives{};
  std::vector<const Operation*> empties;
  std::map<unsigned, std::vector<Life*>> levels;
  std::uint64_t origin = kNever;
  for (const Operation& o : history.operations) origin = std::min(origin, o.call);
  for (const Operation& o : history.operations) {
    if (o.kind != Kind::kEnqueue || o.answer != Answer::kOk) continue;
    lives[o.job].in = &o;
    levels[o.level].push_back(&lives[o.job]);
  }
  for (const Operation& o : history.operations) {
    if (o.kind != Kind::kFetch) continue;
    if (o.answer == Answer::kEmpty) {
      empties.push_back(&o);
      continue;
    }
    Life& life = lives[o.job];
    if (life.in == nullptr) return "fetched, and never enqueued: " + describe(o, origin);
    if (life.in->level != o.level) return "fetched at another level: " + describe(o, origin);
    if (life.out != nullptr)
      return "fetched twice:\n  " + describe(*life.out, origin) + "\n  " + describe(o, origin);
    life.out = &o;
  }
  Cover better;
  for (auto& [number, level] : levels) {
    std::vector<Cover::Piece> present;
    for (Life* life : level) {
      if (life->out != nullptr) {
        life->earliest = better.free_from(std::max(life->in->call, life->out->call));
        life->latest = better.free_until(life->out->returned);
        if (life->earliest > life->latest)
          return (life->in->call > life->out->returned
                      ? "fetched before it was enqueued: "
                      : "fetched while something better was there all along: ") +
                 describe(*life->out, origin);
      }
      if (life->in->returned < life->earliest)
        present.push_back({life->in->returned, life->earliest});
    }
    if (auto finding = overtaken(level, origin)) return finding;
    better.add(std::move(present));
  }
  for (const Operation* o : empties)
    if (better.free_from(o->call) > o->returned)
      return "empty, though something was there all along: " + describe(*o, origin);
  return std::nullopt;
}

}  // namespace ojs_shm::test
