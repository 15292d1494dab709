// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ojs_shm/export.hpp>
#include <ojs_shm/result.hpp>

namespace ojs_shm {

struct JobSpec;

/// What happens to a new job when another job of its key is in its way.
enum class OnConflict : std::uint8_t {
  kReject = 0,   ///< it is refused: kDuplicate
  kIgnore = 1,   ///< nothing is stored, and the other's id is returned
  kReplace = 2,  ///< the other is cancelled and the new one stored, in one step
  /// the same, but a scheduled one gives its time to the new one
  kReplaceExceptSchedule = 3,
};

/// Which jobs are the same, and for how long. Source: ojs-unique-jobs 2.
struct UniquePolicy {
  /// what else two jobs have in common, beside their type
  bool queue = false, args = false;
  /// members of the objects in `args` that count; empty: all of `args`
  std::vector<std::string> args_keys = {};
  /// one of args_keys that no object in `args` has counts as null, instead of being refused: so
  /// jobs that name a key of their own, rather than a member of `args`, are the same by its name
  bool missing_keys_count = false;
  std::vector<std::string> meta_keys = {};  ///< members of `meta` that count
  /// how long after its creation a job keeps other jobs out, in milliseconds; 0: without end
  std::uint64_t period_ms = 0;
  /// the states in which another job is in the way, bit n for the State n: by default the five that
  /// are not final
  std::uint8_t states = 0b10'1111;
  OnConflict on_conflict = OnConflict::kReject;
  /// a duplicate of higher priority gives it to the job in its way; with kReject and kIgnore
  bool raise_priority = false;
};

/// One job's uniqueness, ready for an enqueue: JobSpec::unique points to it.
class OJS_SHM_API JobUnique {
 public:
  /// The key is the first half of the SHA-256 of the canonical JSON of type, queue, args and meta
  /// as far as the policy counts them. Source: ojs-unique-jobs 4, RFC 8785. Looks at the spec's
  /// type, queue, args and extra alone. Errors: kInvalid (a member of args_keys or meta_keys that
  /// the job does not have; args or extra that are not JSON; no states; a period above 200 years).
  static Result<JobUnique> of(const JobSpec& job, const UniquePolicy& policy);
  /// The same of a policy in JSON: `{"keys": ["type", "args"], "period": "PT1H", ...}`. Errors:
  /// kInvalid, subject the member.
  static Result<JobUnique> of(const JobSpec& job, std::string_view policy);
  /// 64 digits: the whole SHA-256.
  std::string key() const;
  OnConflict on_conflict() const;
  /// The policy without the members that it counts, which are only in the key.
  UniquePolicy policy() const;

  /// For the library alone.
  const void* annex() const { return words_.data(); }

 private:
  JobUnique() = default;
  friend struct UniqueWriter;
  alignas(8) std::array<std::uint64_t, 6> words_{};
  std::array<std::uint64_t, 2> rest_{};  ///< of the hash
};

}  // namespace ojs_shm
