// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/unique_key.hpp"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "engine/moves/state.hpp"
#include "engine/unique/unique.hpp"
#include "worker_api/json/canonical.hpp"
#include "worker_api/json/time_text.hpp"

namespace ojs_shm {

namespace json {
namespace {

/// What some clients say instead of "ignore".
constexpr std::string_view kUseExisting = "use_existing";

/// Each is looked for among all the others and among the members of the job.
constexpr std::size_t kMostTexts = 100;

std::vector<std::string> texts_in(std::string_view member, std::string_view value,
                                  Complaint& complaint) {
  std::vector<std::string> texts;
  if (kind_of(value) == Kind::kNull) return texts;
  if (!check_texts(member, value, complaint)) return texts;
  const auto elements = elements_of(value);
  if (elements.size() > kMostTexts) {
    complaint.about(member, "may have at most 100 elements");
    return texts;
  }
  for (const std::string_view element : elements) {
    texts.push_back(string_of(element).value_or(""));
    if (std::ranges::count(texts, texts.back()) > 1)
      complaint.about(member, "names '" + texts.back() + "' twice");
  }
  return texts;
}

/// `keys`; some clients send one text, and names of members of args among the dimensions.
void read_keys(const Member& member, UniquePolicy& policy, bool& meta, Complaint& complaint) {
  std::vector<std::string> keys;
  if (const auto one = string_of(member.value))
    keys.push_back(*one);
  else
    keys = texts_in("unique." + member.name, member.value, complaint);
  for (const std::string& key : keys) {
    if (key == "type") continue;
    if (key == "queue") {
      policy.queue = true;
    } else if (key == "args") {
      policy.args = true;
    } else if (key == "meta") {
      meta = true;
    } else if (member.name == "key") {
      policy.args = true;
      policy.missing_keys_count = true;
      policy.args_keys.push_back(key);
    } else {
      complaint.about("unique.keys", "may name type, queue, args and meta, not '" + key + "'");
    }
  }
}

std::uint64_t read_period(const Member& member, Complaint& complaint) {
  const std::string name = "unique." + member.name;
  const auto written = text(name, member.value, complaint);
  if (!written) return 0;
  const ParsedMs parsed = parse_duration(*written);
  if (!parsed) {
    complaint.about(name, parsed.fault == TimeFault::kSyntax ? "must be a duration such as \"PT1H\""
                                                             : text_of(parsed.fault));
    return 0;
  }
  if (parsed.ms <= 0) complaint.about(name, "must be longer than nothing");
  return static_cast<std::uint64_t>(parsed.ms);
}

std::uint8_t read_states(std::string_view value, Complaint& complaint) {
  std::uint8_t states = 0;
  for (const std::string& name : texts_in("unique.states", value, complaint)) {
    const auto state = engine::job_state_by_name(name);
    if (!state) {
      complaint.about("unique.states", "names '" + name +
                                           "', which is none of scheduled, available, pending, "
                                           "active, completed, retryable, cancelled, discarded");
      return states;
    }
    states = static_cast<std::uint8_t>(states | 1U << static_cast<unsigned>(*state));
  }
  return states;
}

OnConflict read_conflict(std::string_view value, Complaint& complaint) {
  const std::string name = text("unique.on_conflict", value, complaint).value_or("reject");
  if (name == kUseExisting) return OnConflict::kIgnore;
  for (const OnConflict conflict : {OnConflict::kReject, OnConflict::kIgnore, OnConflict::kReplace,
                                    OnConflict::kReplaceExceptSchedule})
    if (name == name_of(conflict)) return conflict;
  complaint.about("unique.on_conflict",
                  "must be reject, ignore, replace or replace_except_schedule, not '" + name + "'");
  return OnConflict::kReject;
}

}  // namespace

std::string usual_unique(std::string_view object) {
  if (object.find(kUseExisting) == std::string_view::npos) return std::string(object);
  std::string out;
  ObjectWriter writer(out);
  for (const Member& member : members_of(object))
    if (member.name == "on_conflict" && string_of(member.value) == kUseExisting)
      writer.text(member.name, name_of(OnConflict::kIgnore));
    else
      writer.value(member.name, member.value);
  writer.close();
  return out;
}

UniquePolicy read_unique(std::string_view object, Complaint& complaint) {
  UniquePolicy policy;
  bool meta = false;
  if (kind_of(object) != Kind::kObject) {
    complaint.wrong_kind("unique", "an object", object);
    return policy;
  }
  for (const Member& member : members_of(object)) {
    const std::string_view name = member.name;
    if (kind_of(member.value) == Kind::kNull) continue;  // ojs-json-format 14.2
    if (name == "keys" || name == "key") {
      read_keys(member, policy, meta, complaint);
    } else if (name == "args_keys") {
      policy.args_keys = texts_in("unique.args_keys", member.value, complaint);
    } else if (name == "meta_keys") {
      policy.meta_keys = texts_in("unique.meta_keys", member.value, complaint);
    } else if (name == "period" || name == "within") {
      policy.period_ms = read_period(member, complaint);
    } else if (name == "period_ms") {
      policy.period_ms =
          whole_number("unique.period_ms", member.value, 0xFFFF'FFFF, complaint).value_or(0);
    } else if (name == "states") {
      policy.states = read_states(member.value, complaint);
    } else if (name == "on_conflict") {
      policy.on_conflict = read_conflict(member.value, complaint);
    } else if (name == "raise_priority") {
      policy.raise_priority =
          boolean("unique.raise_priority", member.value, complaint).value_or(false);
    } else if (name != "fingerprint") {
      complaint.ignore("unique." + member.name);
    }
    if (complaint.raised()) return policy;
  }
  if (meta && policy.meta_keys.empty())
    complaint.about("unique.meta_keys", "must name the members of meta that count");
  if (!meta) policy.meta_keys.clear();
  if (policy.states == 0) complaint.about("unique.states", "must name at least one state");
  return policy;
}

}  // namespace json

// ---- keys ---------------------------------------------------------------------------------------

std::string_view name_of(OnConflict conflict) noexcept {
  static constexpr std::string_view kNames[] = {"reject", "ignore", "replace",
                                                "replace_except_schedule"};
  return kNames[static_cast<unsigned>(conflict) % 4];
}

struct UniqueWriter {
  using Hash = std::array<std::uint64_t, 4>;
  static JobUnique write(const Hash& hash, const UniquePolicy& policy) {
    static_assert(sizeof(engine::NewAnnex) == sizeof(JobUnique::words_));
    JobUnique unique;
    new (unique.words_.data()) engine::NewAnnex{
        engine::kUnique,
        hash[0],
        hash[1],
        engine::Uniqueness::make(policy.states, static_cast<engine::OnConflict>(policy.on_conflict),
                                 policy.raise_priority, policy.period_ms)
            .word,
        0,
        0,
        0,
        0};
    unique.rest_ = {hash[2], hash[3]};
    return unique;
  }
  static const engine::NewAnnex& annex(const JobUnique& unique) {
    return *static_cast<const engine::NewAnnex*>(unique.annex());
  }
};

std::string JobUnique::key() const {
  const engine::NewAnnex& annex = UniqueWriter::annex(*this);
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", annex.key_hi, annex.key_lo, rest_[0],
                     rest_[1]);
}

OnConflict JobUnique::on_conflict() const {
  return static_cast<OnConflict>(
      engine::Uniqueness{UniqueWriter::annex(*this).uniqueness}.on_conflict());
}

UniquePolicy policy_of(std::uint64_t uniqueness) {
  const engine::Uniqueness known{uniqueness};
  UniquePolicy policy;
  policy.states = known.states();
  policy.period_ms = known.period_ms();
  policy.on_conflict = static_cast<OnConflict>(known.on_conflict());
  policy.raise_priority = known.raises();
  return policy;
}

UniquePolicy JobUnique::policy() const { return policy_of(UniqueWriter::annex(*this).uniqueness); }

namespace {

Error invalid(std::string member, std::string what) {
  return Error{Code::kInvalid, member + " " + std::move(what)}.about(std::move(member));
}

/// What counts of args: the members of that name in its objects.
Result<std::string> chosen_args(std::string_view args, const UniquePolicy& policy) {
  std::vector<json::Named> chosen;
  std::vector<json::Member> all;
  for (const std::string_view element : json::elements_of(args))
    if (json::kind_of(json::trim(element)) == json::Kind::kObject)
      for (json::Member& member : json::members_of(element)) all.push_back(std::move(member));
  for (const std::string& key : policy.args_keys) {
    std::vector<std::string_view> values;
    for (const json::Member& member : all)
      if (member.name == key) values.push_back(member.value);
    if (values.empty() && policy.missing_keys_count) values.push_back("null");
    if (values.empty())
      return invalid("unique.args_keys", "names '" + key + "', which no object in args has");
    std::string value;
    if (values.size() == 1) {
      json::append_canonical(value, values.front());
    } else {
      for (const std::string_view one : values) {
        value += value.empty() ? '[' : ',';
        json::append_canonical(value, one);
      }
      value += ']';
    }
    chosen.push_back(json::canonical_member(key, std::move(value)));
  }
  std::string object;
  json::append_canonical_object(object, std::move(chosen));
  return object;
}

Result<std::string> chosen_meta(std::string_view extra, const std::vector<std::string>& keys) {
  std::string_view meta = "{}";
  std::vector<json::Member> members;
  if (!extra.empty()) members = json::members_of(extra);
  for (const json::Member& member : members)
    if (member.name == "meta") meta = member.value;
  std::vector<json::Named> chosen;
  const auto entries = json::kind_of(json::trim(meta)) == json::Kind::kObject
                           ? json::members_of(meta)
                           : std::vector<json::Member>();
  for (const std::string& key : keys) {
    const auto found = std::ranges::find(entries, key, &json::Member::name);
    if (found == entries.end())
      return invalid("unique.meta_keys", "names '" + key + "', which meta does not have");
    std::string value;
    json::append_canonical(value, found->value);
    chosen.push_back(json::canonical_member(key, std::move(value)));
  }
  std::string object;
  json::append_canonical_object(object, std::move(chosen));
  return object;
}

UniqueWriter::Hash hash_of(std::string_view text) {
  static EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);  // looked up once
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, sha256, nullptr) != 1) {
    std::fputs("ojs-shm: OpenSSL gives no SHA-256\n", stderr);
    std::abort();
  }
  UniqueWriter::Hash hash{};
  for (std::size_t i = 0; i < digest.size(); ++i) hash[i / 8] = hash[i / 8] << 8 | digest[i];
  return hash;
}

Status check_policy(const UniquePolicy& policy) {
  constexpr std::uint64_t kLongest = 200ULL * 366 * 24 * 3600 * 1000;
  if (policy.states == 0) return invalid("unique.states", "must name at least one state");
  if (policy.period_ms > kLongest) return invalid("unique.period", "may be 200 years at most");
  if (static_cast<unsigned>(policy.on_conflict) > 3)
    return invalid("unique.on_conflict", "is not a way to deal with a conflict");
  return {};
}

}  // namespace

Result<JobUnique> JobUnique::of(const JobSpec& job, const UniquePolicy& policy) {
  if (Status checked = check_policy(policy); !checked) return checked.error();
  if (Status checked = json::check(job.args);
      !checked || json::kind_of(job.args) != json::Kind::kArray)
    return invalid("args", "must be a JSON array");
  if (!job.extra.empty() &&
      (!json::check(job.extra) || json::kind_of(json::trim(job.extra)) != json::Kind::kObject))
    return invalid("extra", "must be a JSON object");
  std::vector<json::Named> dimensions;
  const auto text = [](std::string_view value) {
    std::string quoted;
    json::append_quoted(quoted, value);
    return json::canonical(quoted);
  };
  dimensions.push_back(json::canonical_member("type", text(job.type)));
  if (policy.queue) dimensions.push_back(json::canonical_member("queue", text(job.queue)));
  if (policy.args || !policy.args_keys.empty()) {
    Result<std::string> args = policy.args_keys.empty()
                                   ? Result<std::string>(json::canonical(job.args))
                                   : chosen_args(job.args, policy);
    if (!args) return args.error();
    if (policy.args) dimensions.push_back(json::canonical_member("args", std::move(*args)));
  }
  if (!policy.meta_keys.empty()) {
    Result<std::string> meta = chosen_meta(job.extra, policy.meta_keys);
    if (!meta) return meta.error();
    dimensions.push_back(json::canonical_member("meta", std::move(*meta)));
  }
  std::string whole;
  json::append_canonical_object(whole, std::move(dimensions));
  return UniqueWriter::write(hash_of(whole), policy);
}

std::optional<JobUnique> unique_of(const JobSpec& job, std::string_view policy,
                                   json::Complaint& complaint) {
  const UniquePolicy read = json::read_unique(json::trim(policy), complaint);
  if (complaint.raised()) return {};
  const auto members = json::members_of(policy);
  const auto key = std::ranges::find(members, "fingerprint", &json::Member::name);
  auto unique = key == members.end()
                    ? JobUnique::of(job, read)
                    : unique_of_key(json::string_of(key->value).value_or(""), read);
  if (unique) return std::move(unique).value();
  complaint.raise(unique.error());
  return {};
}

Result<JobUnique> JobUnique::of(const JobSpec& job, std::string_view policy) {
  if (Status checked = json::check(policy); !checked) return checked.error();
  json::Complaint complaint;
  auto unique = unique_of(job, policy, complaint);
  if (complaint.raised()) return complaint.error();
  if (!complaint.ignored().empty())
    return Error{Code::kInvalid, "a policy has no member " + complaint.ignored().front()}.about(
        "unique");
  return std::move(*unique);
}

std::optional<JobUnique> unique_in(const JobSpec& job) {
  if (job.extra.find("unique") == std::string_view::npos || !json::check(job.extra)) return {};
  for (const json::Member& member : json::members_of(job.extra)) {
    if (member.name != "unique") continue;
    json::Complaint complaint;
    if (auto unique = unique_of(job, member.value, complaint)) return unique;
  }
  return {};
}

Result<JobUnique> unique_in_tenant(const JobSpec& job) {
  for (const json::Member& member : json::members_of(job.extra)) {
    if (member.name != "unique") continue;
    for (const json::Member& inner : json::members_of(member.value))
      if (inner.name == "fingerprint")
        return invalid("unique.fingerprint", "counts for all tenants, and cannot name one's own");
    json::Complaint complaint;
    UniquePolicy policy = json::read_unique(json::trim(member.value), complaint);
    if (complaint.raised()) return complaint.error();
    if (std::ranges::find(policy.meta_keys, "tenant_id") == policy.meta_keys.end())
      policy.meta_keys.emplace_back("tenant_id");
    return JobUnique::of(job, policy);
  }
  return invalid("unique", "is not there");
}

bool says_its_key(const JobInfo& job) {
  if (job.unique_key.empty()) return true;
  JobSpec spec;
  spec.type = job.type;
  spec.queue = job.queue;
  spec.args = job.args;
  spec.extra = job.extra;
  const auto said = unique_in(spec);
  return !said || said->key().starts_with(job.unique_key);
}

std::string print_unique(std::string_view key, const UniquePolicy& policy) {
  std::string out;
  json::ObjectWriter unique(out);
  unique.text("fingerprint", key);
  std::string& states = unique.open("states") += '[';
  for (unsigned state = 0; state < engine::kJobStates; ++state) {
    if ((policy.states >> state & 1) == 0) continue;
    if (states.back() != '[') states += ',';
    json::append_quoted(states, engine::name_of(static_cast<engine::JobState>(state)));
  }
  states += ']';
  if (policy.period_ms != 0) unique.text("period", print_duration(policy.period_ms));
  unique.text("on_conflict", name_of(policy.on_conflict));
  if (policy.raise_priority) unique.boolean("raise_priority", true);
  unique.close();
  return out;
}

Result<JobUnique> unique_of_key(std::string_view key, const UniquePolicy& policy) {
  if (Status checked = check_policy(policy); !checked) return checked.error();
  UniqueWriter::Hash hash{};
  const bool digits = (key.size() == 32 || key.size() == 64) &&
                      key.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!digits) return invalid("unique.fingerprint", "must be 32 or 64 digits, 0 to f");
  for (std::size_t i = 0; i < key.size() / 16; ++i)
    std::from_chars(key.data() + i * 16, key.data() + i * 16 + 16, hash[i], 16);
  return UniqueWriter::write(hash, policy);
}

}  // namespace ojs_shm
