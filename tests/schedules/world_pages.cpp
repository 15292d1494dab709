// SPDX-License-Identifier: Apache-2.0
#include "tests/schedules/world_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace ojs_shm::test {
namespace {

std::vector<WorldPages*> all;
const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

}  // namespace

WorldPages::WorldPages(void* from, std::size_t bytes)
    : from_(static_cast<std::byte*>(from)), bytes_(bytes), image_(from_, from_ + bytes) {
  written_.reserve(bytes / page_bytes + 1);  // none is made while a fault is handled
  all.push_back(this);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  if (::sigaction(SIGSEGV, &action, nullptr) != 0 || ::mprotect(from, bytes, PROT_READ) != 0)
    throw std::runtime_error("the world's pages cannot be guarded");
}

WorldPages::~WorldPages() { std::erase(all, this); }

void WorldPages::begin_anew() {
  for (const std::size_t at : written_)
    std::memcpy(from_ + at, image_.data() + at, std::min(page_bytes, bytes_ - at));
}

bool WorldPages::open(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  if (byte < from_ || byte >= from_ + bytes_) return false;
  const std::size_t at = static_cast<std::size_t>(byte - from_) / page_bytes * page_bytes;
  if (std::find(written_.begin(), written_.end(), at) != written_.end()) return false;
  written_.push_back(at);
  return ::mprotect(from_ + at, page_bytes, PROT_READ | PROT_WRITE) == 0;
}

/// Any other fault is what it would have been.
void WorldPages::on_fault(int signal, siginfo_t* info, void* /*context*/) {
  for (WorldPages* pages : all)
    if (pages->open(info->si_addr)) return;
  ::signal(signal, SIG_DFL);
}

}  // namespace ojs_shm::test
