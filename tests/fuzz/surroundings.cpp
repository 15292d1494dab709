// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/surroundings.hpp"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>

#include "tests/fuzz/input.hpp"

namespace {

constexpr std::uint64_t kBeginningMs = 1'800'000'000'000;
std::atomic<std::uint64_t> clock_us, random_state;

struct Fenced {
  std::byte* begin;
  std::size_t size;
};
std::mutex fences_mutex;
std::map<void*, Fenced>& fences() {
  static auto* one = new std::map<void*, Fenced>;
  return *one;
}

}  // namespace

// The linker's --wrap leads the calls of our own code here.
extern "C" {
void* __real_mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset);
int __real_munmap(void* address, std::size_t size);
int __real_clock_gettime(clockid_t clock, timespec* time);

void* __wrap_mmap(void* address, std::size_t size, int protection, int flags, int fd,
                  off_t offset) {
  if (fd < 0 || address != nullptr)
    return __real_mmap(address, size, protection, flags, fd, offset);
  constexpr std::size_t kFence = std::size_t{1} << 32, kPage = 4096;
  const std::size_t pages = (size + kPage - 1) / kPage * kPage;
  void* reserved = __real_mmap(nullptr, pages + 2 * kFence, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return MAP_FAILED;
  auto* begin = static_cast<std::byte*>(reserved);
  void* mapped = __real_mmap(begin + kFence, size, protection, flags | MAP_FIXED, fd, offset);
  if (mapped == MAP_FAILED) {
    __real_munmap(reserved, pages + 2 * kFence);
    return MAP_FAILED;
  }
  ASAN_UNPOISON_MEMORY_REGION(mapped, pages);
  ASAN_POISON_MEMORY_REGION(static_cast<std::byte*>(mapped) + size, pages - size);
  const std::lock_guard lock(fences_mutex);
  fences()[mapped] = {begin, pages + 2 * kFence};
  return mapped;
}

int __wrap_munmap(void* address, std::size_t size) {
  const std::lock_guard lock(fences_mutex);
  const auto found = fences().find(address);
  if (found == fences().end()) return __real_munmap(address, size);
  const Fenced fenced = found->second;
  fences().erase(found);
  ASAN_UNPOISON_MEMORY_REGION(address, (size + 4095) / 4096 * 4096);
  return __real_munmap(fenced.begin, fenced.size);
}

int __wrap_clock_gettime(clockid_t clock, timespec* time) {
  if (clock != CLOCK_REALTIME_COARSE && clock != CLOCK_MONOTONIC)
    return __real_clock_gettime(clock, time);
  // Who asks the second one waits for something.
  const std::uint64_t us = clock_us.fetch_add(clock == CLOCK_MONOTONIC ? 250 : 10);
  time->tv_sec = static_cast<time_t>(us / 1'000'000);
  time->tv_nsec = static_cast<long>(us % 1'000'000 * 1000);
  return 0;
}

ssize_t __wrap_getrandom(void* buffer, std::size_t size, unsigned) {
  for (std::size_t i = 0; i < size; ++i)
    static_cast<unsigned char*>(buffer)[i] =
        static_cast<unsigned char>(random_state.fetch_add(0x9E37'79B9'7F4A'7C15) >> 56);
  return static_cast<ssize_t>(size);
}
}

namespace ojs_shm::fuzz {

void begin_run() {
  clock_us.store(kBeginningMs * 1000);
  random_state.store(1);
}

void advance_clock(std::uint64_t ms) { clock_us.fetch_add(ms * 1000); }

const std::string& scratch() {
  static const auto* path = [] {
    auto* made = new std::string(std::filesystem::temp_directory_path() / "ojs-shm-fuzz.XXXXXX");
    if (::mkdtemp(made->data()) == nullptr) throw std::runtime_error("no directory below TMPDIR");
    std::atexit([] {
      std::error_code ignored;
      std::filesystem::remove_all(scratch(), ignored);
    });
    return made;
  }();
  return *path;
}

void broken(std::string_view what) {
  std::fprintf(stderr, "broken: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace ojs_shm::fuzz
