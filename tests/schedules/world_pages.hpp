// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <cstddef>
#include <vector>

namespace ojs_shm::test {

/// Memory that begins anew again and again: what it holds now is kept, and of its pages only those
/// that were ever written to are brought back. To notice the first write to a page it is not
/// writable before.
class WorldPages {
 public:
  WorldPages(void* from, std::size_t bytes);
  ~WorldPages();
  WorldPages(const WorldPages&) = delete;
  void begin_anew();

 private:
  static void on_fault(int signal, siginfo_t* info, void* context);
  bool open(const void* address);

  std::byte* from_;
  std::size_t bytes_;
  std::vector<std::byte> image_;
  std::vector<std::size_t> written_;  ///< offsets of pages
};

}  // namespace ojs_shm::test
