// SPDX-License-Identifier: Apache-2.0
#include "tools/top/question.hpp"

#include <spdlog/fmt/fmt.h>
#include <ojs_shm/admin.hpp>

#include <charconv>

#include "tools/shell/output.hpp"

namespace ojs_shm::top {
namespace {

/// Attaches for one change and detaches again, so that a look holds nothing.
template <class Change>
std::string with_admin(const SegmentName& where, Change change) {
  Result<Admin> admin = Admin::attach(where);
  if (!admin) return shell::printable(admin.error().message);
  return change(admin.value());
}

std::string told(const Status& status, const std::string& done) {
  return status ? done : shell::printable(status.error().message);
}

Question pause(const SegmentName& where, const std::string& queue, bool paused) {
  return {fmt::format("{} queue {}?", paused ? "pause" : "resume", queue),
          false,
          {},
          [=](const std::string&) {
            return with_admin(where, [&](Admin& admin) {
              return told(admin.set_queue(queue, {.paused = paused}),
                          fmt::format("queue {} is {}", queue, paused ? "paused" : "running"));
            });
          }};
}

Question retry(const SegmentName& where, const std::string& id) {
  return {"run job " + id + " again?", false, {}, [=](const std::string&) {
            return with_admin(where, [&](Admin& admin) {
              return told(admin.producer().retry(id), "job " + id + " is available");
            });
          }};
}

/// What is kept of a job that is over goes. A dead letter goes also while its workflow runs.
Question drop(const SegmentName& where, const std::string& id) {
  return {"drop what is kept of job " + id + "?", false, {}, [=](const std::string&) {
            return with_admin(where, [&](Admin& admin) {
              const Result<JobInfo> job = admin.producer().get(id);
              const bool dead = job && job->dead_letter;
              return told(dead ? admin.drop_dead(id) : admin.drop(id), "job " + id + " is dropped");
            });
          }};
}

Question cancel(const SegmentName& where, const std::string& id) {
  return {"cancel job " + id + "?", false, {}, [=](const std::string&) {
            return with_admin(where, [&](Admin& admin) {
              const auto cancelled = admin.producer().cancel(id);
              return cancelled ? "job " + id + " is cancelled"
                               : shell::printable(cancelled.error().message);
            });
          }};
}

std::string reprioritize(Admin& admin, const std::string& id, const std::string& value) {
  std::int64_t priority = 0;
  const auto [rest, problem] = std::from_chars(value.data(), value.data() + value.size(), priority);
  if (problem != std::errc{} || rest != value.data() + value.size()) {
    const Result<Observer> observer = Observer::attach(admin.segment());
    if (!observer) return shell::printable(observer.error().message);
    const auto named = observer->priority_by_name(value);
    if (!named) return shell::printable(named.error().message);
    priority = named.value();
  }
  const auto before = admin.producer().reprioritize(id, priority);
  return before ? fmt::format("job {} has priority {}", id, priority)
                : shell::printable(before.error().message);
}

Question new_priority(const SegmentName& where, const std::string& id) {
  return {"priority of job " + id + ": ", true, {}, [=](const std::string& value) {
            return with_admin(where, [&](Admin& admin) { return reprioritize(admin, id, value); });
          }};
}

Question repair(const SegmentName& where) {
  return {
      "repair after dead processes, and mend what is found?", false, {}, [=](const std::string&) {
        return with_admin(where, [](Admin& admin) {
          const auto dead = admin.repair();
          if (!dead) return shell::printable(dead.error().message);
          const auto mended = admin.mend();
          if (!mended) return shell::printable(mended.error().message);
          return fmt::format("{} dead processes repaired, {} things mended", dead.value(),
                             mended.value());
        });
      }};
}

}  // namespace

std::optional<Question> question_of(const Options& options, View view, const Subject& subject,
                                    char key, const std::string& row) {
  const SegmentName& where = options.where;
  if (key == 'M') return repair(where);
  if (view == View::kQueues && !row.empty() && (key == 'p' || key == 'r'))
    return pause(where, row, key == 'p');
  const std::string id = view == View::kJobs ? row : view == View::kJob ? subject.job : "";
  if (id.empty()) return std::nullopt;
  switch (key) {
    case 'R': return retry(where, id);
    case 'D': return drop(where, id);
    case 'c': return cancel(where, id);
    case 'P': return new_priority(where, id);
    default: return std::nullopt;
  }
}

}  // namespace ojs_shm::top
