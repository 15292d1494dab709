// SPDX-License-Identifier: Apache-2.0
#include "tools/gateway/intake/receipt.hpp"

#include <algorithm>
#include <utility>

#include "tools/gateway/intake/job_ids.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/bulk.hpp"
#include "tools/gateway/routes/fault.hpp"

namespace ojs_shm::gateway {
namespace {

constexpr std::string_view kType = "ojs.receipt";
constexpr std::uint32_t kKeptS = 24 * 60 * 60;
/// Longer than any gateway is at work on a request.
constexpr std::uint64_t kDeadMs = 30'000;
constexpr std::size_t kLongestKey = 256;  // characters
constexpr std::uint64_t kPlaces = 1023;

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::optional<std::string> key_of(const Request& request, const Body& body) {
  std::optional<std::string> key = body.text("idempotency_key");
  if (const std::string_view header = request.header("idempotency-key"); !header.empty())
    key = header;
  if (key && (key->empty() || characters(*key) > kLongestKey))
    throw invalid_request("an idempotency key has 1 to 256 characters", "idempotency_key");
  return key;
}

/// The same for all texts of the same JSON.
std::string hash_of(const Body& body) {
  const std::string asked = '[' + without(body.object(), "idempotency_key") + ']';
  return must(JobUnique::of(JobSpec{.type = kType, .args = asked}, UniquePolicy{.args = true}))
      .key();
}

Fault conflict(std::string message) {
  return Fault{.status = 409, .code = "conflict", .message = std::move(message)};
}

}  // namespace

std::optional<Receipt> Receipt::of(Desk& desk, const Request& request, const Body& body,
                                   std::string_view operation) {
  const auto key = key_of(request, body);
  if (!key) return std::nullopt;
  Receipt receipt;
  receipt.holder_ = object([&](json::ObjectWriter& writer) {
    writer.text("tenant", request.header("x-ojs-tenant"));
    writer.text("operation", operation);
    writer.text("key", *key);
  });
  receipt.request_ = hash_of(body);
  receipt.first_id_ = fresh_id();
  receipt.first_id_.assign(receipt.first_id_.hi, receipt.first_id_.lo & ~kPlaces);
  // A receipt that ends while it is looked at is claimed at the second time.
  if (!receipt.claim(desk) && !receipt.claim(desk))
    throw conflict("the idempotency key is being used by another request");
  return receipt;
}

/// What it says before there is a reply.
std::string Receipt::claimed() const {
  return object([&](json::ObjectWriter& writer) {
    writer.text("request", request_);
    writer.text("first_id", first_id_.view());
    if (chosen_) writer.value("chosen", array_of(*chosen_, quoted));
  });
}

void Receipt::note(Desk& desk, std::vector<std::string> chosen) {
  chosen_ = std::move(chosen);
  const auto noted = put(desk, claimed(), OnConflict::kReplace);
  if (noted) id_ = noted->str();
}

void Receipt::give_up(Desk& desk) const { (void)desk.producer().cancel(id_); }

/// False: there was a receipt, and it has ended.
bool Receipt::claim(Desk& desk) {
  const JobIdText id = must(put(desk, claimed(), OnConflict::kIgnore));
  id_ = id.str();
  if (!desk.producer().deduplicated()) return true;
  const auto found = desk.observer.get(id.view());
  if (!found || is_terminal(found->state)) return false;  // another took its place meanwhile
  read(found->args, found->created_at_ms, desk.now_ms());
  return true;
}

/// Of a receipt that is there; any process can have written it.
void Receipt::read(std::string_view args, std::uint64_t created_at_ms, std::uint64_t now_ms) {
  const auto parts = json::check(args) ? json::elements_of(args) : std::vector<std::string_view>();
  if (parts.size() != 2 || json::kind_of(parts[1]) != json::Kind::kObject)
    throw conflict("the receipt of the idempotency key cannot be read");
  const Body outcome(parts[1], "");
  if (outcome.text("request") != request_)
    throw conflict("the idempotency key was given with another request before");
  if (const auto body = outcome.raw("reply")) {
    reply_ = Reply{.status = outcome.whole("status", 200, 599).value_or(200),
                   .body = std::string(*body)};
    reply_->headers.emplace_back(kBatchSize,
                                 std::to_string(outcome.integer("batch_size").value_or(0)));
    return;
  }
  const auto first = read_id(outcome.text("first_id").value_or(""));
  if (!first) throw conflict("the receipt of the idempotency key cannot be read");
  if (const std::uint64_t dead = created_at_ms + kDeadMs; now_ms < dead) {
    Fault fault = conflict("a request with the idempotency key is still at work");
    fault.retryable = true;
    fault.headers = {{"Retry-After", std::to_string((dead - now_ms + 999) / 1000)}};
    throw fault;
  }
  first_id_.assign(first->hi, first->lo & ~kPlaces);
  chosen_ = outcome.ids("chosen");
  since_ms_ = created_at_ms;
}

JobIdText Receipt::id_of(std::size_t at) const {
  JobIdText id;
  id.assign(first_id_.hi, first_id_.lo | (at & kPlaces));
  return id;
}

bool Receipt::keep(Desk& desk, const Reply& reply) const {
  const auto size =
      std::ranges::find(reply.headers, kBatchSize, &std::pair<std::string, std::string>::first);
  const std::string outcome = object([&](json::ObjectWriter& writer) {
    writer.text("request", request_);
    writer.number("status", static_cast<std::int64_t>(reply.status));
    if (size != reply.headers.end()) writer.value("batch_size", size->second);
    writer.value("reply", reply.body);
  });
  const auto kept = put(desk, outcome, OnConflict::kReplace);
  return kept || kept.code() != Code::kTooLarge;
}

Result<JobIdText> Receipt::put(Desk& desk, std::string_view outcome, OnConflict on_conflict) const {
  const std::string args = '[' + holder_ + ',' + std::string(outcome) + ']';
  JobSpec receipt{.type = kType, .args = args, .queue = kQueue};
  receipt.pending = true;
  receipt.enqueue_ttl_s = kKeptS;
  const UniquePolicy by_key{.queue = true,
                            .args = true,
                            .args_keys = {"tenant", "operation", "key"},
                            .on_conflict = on_conflict};
  const auto unique = JobUnique::of(receipt, by_key);
  if (!unique) return unique.error();
  receipt.unique = &*unique;
  return desk.producer().enqueue(receipt);
}

}  // namespace ojs_shm::gateway
