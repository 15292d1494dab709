// SPDX-License-Identifier: Apache-2.0
// Ids that clients bring.

#include "engine/tables/job_look.hpp"
#include "tests/catalogue/operations.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::string_view kBrought = "01961234-5678-7abc-8def-0123456789ab";

JobSpec brought(std::string_view id) {
  JobSpec spec = spec_of();
  spec.id = id;
  return spec;
}

/// Of the ids that share a line of the index, the one of that number.
std::string id_of_the_line(const Hands& hands, unsigned number) {
  const std::uint32_t lines =
      hands.handle->store().segment().geometry().key_cells / shm::KeyIndex::kLineWords;
  const auto line = [lines](engine::JobId id) {
    return shm::KeyIndex::fingerprint(engine::hash_id(id)) / shm::KeyIndex::kLineWords % lines;
  };
  engine::JobId id{0x0196'1234'5678'7ABC, 0x8DEF'0000'0000'0000};
  const auto wanted = line(id);
  for (unsigned found = 0; found < number;) found += line({id.hi, ++id.lo}) == wanted ? 1 : 0;
  return engine::to_string(id);
}
void fill_line(Hands& hands) {
  for (unsigned i = 0; i + 1 < shm::KeyIndex::kLineWords; ++i)
    hands.put(brought(id_of_the_line(hands, i)));
}
void put_beyond_line(Hands& hands) {
  const std::string id = id_of_the_line(hands, shm::KeyIndex::kLineWords);
  JobSpec spec = brought(id);
  spec.retry.max_attempts = 1, spec.retry.dead_letter = true;
  hands.put(spec);
}

}  // namespace

std::vector<Operation> id_operations() {
  return {
      {"enqueue_brought_id", [](Hands&) {}, [](Hands& h) { h.put(brought(kBrought)); }},
      {"enqueue_duplicate_id", [](Hands& h) { h.put(brought(kBrought)); },
       [](Hands& h) {
         if (h.producer->enqueue(brought(kBrought)).code() != Code::kDuplicate)
           throw std::runtime_error("a duplicate was accepted");
       }},
      {"enqueue_id_beyond_its_line", fill_line, put_beyond_line},
      {"drop_dead_beyond_its_line",
       [](Hands& h) {
         fill_line(h);
         put_beyond_line(h);
         for (h.take(h.job); h.job.id() != h.id; h.take(h.job)) must(h.worker->ack(h.job));
         Failure failure;
         failure.code = "boom";
         must(h.worker->nack(h.job, failure));
       },
       [](Hands& h) { must(h.admin->drop_dead(h.id)); }},
  };
}

}  // namespace ojs_shm::test
