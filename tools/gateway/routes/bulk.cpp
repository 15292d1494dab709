// SPDX-License-Identifier: Apache-2.0
//
// Many jobs are stored by one request, each with its own outcome. Source: ojs-bulk-operations 5.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/gateway/intake/body.hpp"
#include "tools/gateway/intake/job_ids.hpp"
#include "tools/gateway/intake/placement.hpp"
#include "tools/gateway/intake/receipt.hpp"
#include "tools/gateway/replies/json_text.hpp"
#include "tools/gateway/routes/bulk.hpp"
#include "tools/gateway/routes/fault.hpp"
#include "tools/gateway/routes/handlers.hpp"
#include "tools/gateway/serving/hall.hpp"

namespace ojs_shm::gateway {

void check_bulk_size(std::size_t items, std::size_t most) {
  if (items <= most) return;
  Fault fault{.status = 413, .code = "BATCH_SIZE_EXCEEDED"};
  fault.message = fmt::format("batch size {} exceeds the maximum of {}", items, most);
  fault.members = {{"max_batch_size", std::to_string(most)}};
  fault.headers = {{"X-OJS-Max-Batch-Size", std::to_string(most)}};
  throw fault;
}

bool is_atomic(const Body& body) {
  const std::string atomicity = body.text("atomicity").value_or("partial");
  if (atomicity != "partial" && atomicity != "atomic")
    throw invalid_request("atomicity must be partial or atomic", "atomicity");
  return atomicity == "atomic";
}

unsigned bulk_status(std::size_t succeeded, std::size_t failed, unsigned all) {
  return failed == 0 ? all : succeeded == 0 ? 422 : 207;
}

namespace {

namespace asio = boost::asio;

/// A job of the request, and what became of it.
struct Entry {
  std::optional<Envelope> envelope = {};
  std::optional<Placed> placed = {};
  std::optional<Fault> failed = {};
  bool numbered = false;  ///< its id is the receipt's
};

std::string_view status_of(const Entry& entry) {
  if (entry.failed) return "failed";
  return entry.placed->there ? "duplicate" : "created";
}

template <class PrintJob>
std::string text_of(std::size_t index, const Entry& entry, PrintJob print_job) {
  return object([&](json::ObjectWriter& writer) {
    writer.number("index", static_cast<std::int64_t>(index));
    writer.text("status", status_of(entry));
    if (entry.failed) return writer.value("error", error_text(*entry.failed));
    print_job(writer.open("job"));
  });
}

std::string entry_text(Desk& desk, std::size_t index, const Entry& entry) {
  return text_of(index, entry, [&](std::string& out) {
    append_placed(out, desk, *entry.envelope, *entry.placed);
  });
}

/// For a reply that could not be kept otherwise.
std::string brief_text(Desk&, std::size_t index, const Entry& entry) {
  return text_of(index, entry, [&](std::string& out) {
    json::ObjectWriter job(out);
    job.text("id", entry.placed->id.view());
    job.text("type", entry.envelope->type);
    job.close();
  });
}

std::vector<Entry> read_all(Desk& desk, const Request& request,
                            const std::vector<std::string_view>& jobs) {
  std::vector<Entry> entries(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    try {
      entries[i].envelope = read_one_of_many(desk, request, jobs[i]);
    } catch (const Fault& fault) {
      entries[i].failed = fault;
    }
  }
  return entries;
}

Placed placed_as_named(const Envelope& envelope) { return {.id = read_id(envelope.id).value()}; }

/// Gives each job without an id the one that the receipt has for it.
void number(const Receipt& receipt, std::vector<Entry>& entries) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].envelope || !entries[i].envelope->id.empty()) continue;
    entries[i].envelope->id = receipt.id_of(i).str();
    entries[i].numbered = true;
  }
}

/// Whether the same request stored the job, in a gateway that died or that took the request over
/// meanwhile. The latter is known of the receipt's ids alone, which no other request has.
bool was_stored(Desk& desk, const Receipt* receipt, const Entry& entry) {
  if (receipt == nullptr || (!entry.numbered && !receipt->taken_over())) return false;
  const auto job = desk.observer.get(entry.envelope->id);
  return job && (entry.numbered || receipt->brought(*job));
}

void put_each(Desk& desk, std::vector<Entry>& entries, const Receipt* receipt) {
  for (Entry& entry : entries) {
    if (entry.failed) continue;
    try {
      if (receipt != nullptr && receipt->taken_over() && was_stored(desk, receipt, entry))
        entry.placed = placed_as_named(*entry.envelope);
      else
        entry.placed =
            put_at_once(desk, {entry.envelope->spec()}, {&*entry.envelope, 1}).jobs.front();
    } catch (const Fault& fault) {
      if (was_stored(desk, receipt, entry))
        entry.placed = placed_as_named(*entry.envelope);
      else
        entry.failed = fault;
    }
  }
  desk.hall.jobs_came();
}

std::size_t failures(const std::vector<Entry>& entries) {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries, [](const Entry& each) { return each.failed.has_value(); }));
}

/// Whether all of an atomic request is stored. An id of the receipt's tells it by itself.
bool all_were_stored(Desk& desk, const Receipt* receipt, const std::vector<Entry>& entries) {
  const auto stored = [&](const Entry& each) { return was_stored(desk, receipt, each); };
  const auto numbered = [](const Entry& each) { return each.numbered; };
  if (std::ranges::none_of(entries, numbered)) return std::ranges::all_of(entries, stored);
  return std::ranges::any_of(entries,
                             [&](const Entry& each) { return each.numbered && stored(each); });
}

/// One that is not there by its id met another of its key, or has ended and is gone.
void place_as_stored(Desk& desk, const Receipt* receipt, std::vector<Entry>& entries) {
  for (Entry& entry : entries) {
    entry.placed = placed_as_named(*entry.envelope);
    if (!entry.envelope->unique || was_stored(desk, receipt, entry)) continue;
    try {
      entry.placed =
          put_at_once(desk, {entry.envelope->spec()}, {&*entry.envelope, 1}).jobs.front();
    } catch (const Fault&) {  // it has ended, and its key is another's by now
    }
  }
}

/// Whether a refusal of all is for the sake of this job: by its index, or by its queue.
bool is_to_blame(const Fault& fault, std::size_t index, const Envelope& envelope) {
  for (const auto& [name, value] : fault.details)
    if (name == "index") return value == std::to_string(index);
  for (const auto& [name, value] : fault.members)
    if (name == "queue") return value == quoted(envelope.queue);
  return true;
}

/// All or none. What failed for another's sake says so.
asio::awaitable<void> put_all(Desk& desk, std::vector<Entry>& entries, Visit& visit,
                              const Receipt* receipt) {
  const Fault another{.status = 422,
                      .code = "rolled_back",
                      .message = "not stored, because another job of the request was refused"};
  if (failures(entries) != 0) {
    for (Entry& entry : entries)
      if (!entry.failed) entry.failed = another;
    co_return;
  }
  if (receipt != nullptr && receipt->taken_over() && all_were_stored(desk, receipt, entries))
    co_return place_as_stored(desk, receipt, entries);
  std::vector<Envelope> envelopes;
  std::vector<JobSpec> specs;
  for (const Entry& entry : entries) envelopes.push_back(*entry.envelope);
  for (const Envelope& envelope : envelopes) specs.push_back(envelope.spec());
  try {
    const auto put_in = co_await put(desk, specs, envelopes, std::chrono::milliseconds(0), visit);
    for (std::size_t i = 0; i < entries.size(); ++i) entries[i].placed = put_in.jobs[i];
  } catch (const Fault& fault) {
    if (receipt != nullptr && all_were_stored(desk, receipt, entries))
      co_return place_as_stored(desk, receipt, entries);
    for (std::size_t i = 0; i < entries.size(); ++i)
      entries[i].failed = is_to_blame(fault, i, *entries[i].envelope) ? fault : another;
  }
}

Reply told(Desk& desk, const std::vector<Entry>& entries,
           std::string (*print)(Desk&, std::size_t, const Entry&)) {
  const std::size_t failed = failures(entries), stored = entries.size() - failed;
  Reply reply{.status = bulk_status(stored, failed, 201)};
  reply.headers.emplace_back(kBatchSize, std::to_string(entries.size()));
  reply.body = object([&](json::ObjectWriter& writer) {
    writer.number("total", static_cast<std::int64_t>(entries.size()));
    writer.number("succeeded", static_cast<std::int64_t>(stored));
    writer.number("failed", static_cast<std::int64_t>(failed));
    std::string& out = writer.open("items") += '[';
    for (std::size_t i = 0; i < entries.size(); ++i)
      out.append(i == 0 ? "" : ",").append(print(desk, i, entries[i]));
    out += ']';
  });
  return reply;
}

asio::awaitable<Reply> enqueue(Desk& desk, const Request& request, Visit& visit) {
  const auto begin = std::chrono::steady_clock::now();
  const Body body(request);
  const auto jobs = body.elements("jobs");
  if (!jobs || jobs->empty())
    throw invalid_request("jobs must be an array of at least one job", "jobs");
  check_bulk_size(jobs->size());
  const bool atomic = is_atomic(body);
  const auto receipt = Receipt::of(desk, request, body, "enqueue");
  if (receipt && receipt->reply()) co_return *receipt->reply();
  std::vector<Entry> entries = read_all(desk, request, *jobs);
  const Receipt* given = receipt ? &*receipt : nullptr;
  if (receipt) number(*receipt, entries);
  if (atomic)
    co_await put_all(desk, entries, visit, given);
  else
    put_each(desk, entries, given);
  desk.admin.tell_bulk(BulkKind::kEnqueue, entries.size(), entries.size() - failures(entries),
                       atomic);
  std::map<std::string_view, std::size_t> items;
  for (const Entry& entry : entries) ++items[status_of(entry)];
  desk.hall.bulk_meter().count("enqueue", atomic, items, std::chrono::steady_clock::now() - begin);
  Reply reply = told(desk, entries, entry_text);
  if (receipt && !receipt->keep(desk, reply)) {
    reply = told(desk, entries, brief_text);
    receipt->keep(desk, reply);
  }
  co_return reply;
}

}  // namespace

std::span<const Route> bulk_routes() {
  static const Route kRoutes[] = {
      {"POST",
       "/ojs/v1/jobs/bulk",
       Scope::kWrite,
       &enqueue,
       {"ManyNewJobs", "BulkEnqueued", "422"}},
  };
  return kRoutes;
}

}  // namespace ojs_shm::gateway
