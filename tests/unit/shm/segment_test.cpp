// SPDX-License-Identifier: Apache-2.0
// What a segment's memory is made of.

#include "shm/segment.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/unit/shm/bare_segment.hpp"

namespace ojs_shm::test {
namespace {

constexpr std::uint64_t kHugePage = 2U << 20;

/// Of the mapping at `address`, the bytes that this process has mapped as huge pages.
std::uint64_t mapped_huge(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  std::ostringstream hex;
  hex << std::hex << reinterpret_cast<std::uintptr_t>(address) << '-';
  std::string line, name;
  while (std::getline(maps, line) && line.rfind(hex.str(), 0) != 0) {}
  while (std::getline(maps, line)) {
    std::uint64_t kibibytes = 0;
    std::istringstream(line) >> name >> kibibytes;
    if (name == "ShmemPmdMapped:") return kibibytes * 1024;
  }
  return 0;
}

/// Whether the file system of `folder` makes huge pages for the asking.
bool has_huge_pages(const ScratchDirectory& folder) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE
  const std::string path = folder / "probe";
  const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  void* room = ::mmap(nullptr, 2 * kHugePage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::uintptr_t aligned =
      (reinterpret_cast<std::uintptr_t>(room) + kHugePage - 1) & ~(kHugePage - 1);
  void* const mapped = ::mmap(reinterpret_cast<void*>(aligned), kHugePage, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_FIXED, fd, 0);
  const bool has = ::ftruncate(fd, kHugePage) == 0 && ::posix_fallocate(fd, 0, 1) == 0 &&
                   ::madvise(mapped, kHugePage, kCollapse) == 0;
  ::munmap(room, 2 * kHugePage);
  ::close(fd);
  return has;
}

shm::Geometry some_mebibytes() {
  shm::Geometry geometry = BareSegment::small();
  geometry.slots = 16'384;
  return geometry;
}

TEST(Segment, lies_in_huge_pages_where_the_kernel_has_them) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "NOT RUN: a sanitizer has its own idea of addresses";
#endif
  ScratchDirectory folder;
  if (!has_huge_pages(folder))
    GTEST_SKIP() << "NOT RUN: this kernel or file system makes no huge pages for the asking";
  BareSegment made(some_mebibytes());
  const shm::Opened again = shm::open_segment(made->path(), 0, shm::Mapping::kWritable);
  ASSERT_EQ(again.code, shm::OpenCode::kOk) << again.detail;
  const auto address = reinterpret_cast<std::uintptr_t>(&again.segment.header());
  EXPECT_EQ(address % kHugePage, 0U);
  const std::uint32_t middle = again.segment.geometry().slots / 2;
  const volatile std::uint64_t seen = again.segment.slot(middle).control.load();
  EXPECT_EQ(seen, 0U);
  EXPECT_EQ(mapped_huge(&again.segment.header()) % kHugePage, 0U);
  EXPECT_GE(mapped_huge(&again.segment.header()), kHugePage) << "one fault maps a huge page";
}

TEST(Segment, gives_back_the_addresses_that_it_does_not_need) {
  const auto mapped = [] {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    statm >> pages;
    return pages;
  };
  BareSegment made(some_mebibytes());
  const std::uint64_t before = mapped();
  std::uint64_t with_one = 0;
  {
    const shm::Opened opened = shm::open_segment(made->path(), 0, shm::Mapping::kWritable);
    ASSERT_EQ(opened.code, shm::OpenCode::kOk) << opened.detail;
    with_one = mapped() - before;
  }
  EXPECT_LT(with_one * 4096, made->header().size_bytes + kHugePage);
  EXPECT_LE(mapped(), before);
}

}  // namespace
}  // namespace ojs_shm::test
