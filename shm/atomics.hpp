// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "shm/points.hpp"

// The one door to atomics. Each shared word is an Atomic<T>; each of its writes names the crash
// point right after it.
//
// Orders. Read-modify-writes and loads are sequentially consistent unless a comment says why
// relaxed will do: a store and a later load of another word need it in some places, and it costs no
// instruction more than acquire and release. So are stores, except on x86-64, where it would cost a
// locked instruction: there they are release, and each write that must be seen before a later load
// is, or is followed by, a read-modify-write, which is a full barrier. docs/memory_ordering.md has
// the argument.
//
// With OJS_SHM_TEST_HOOKS every access first calls the hook of this thread (a scheduler may switch
// there, or count), and every write calls it again with its point (a test may kill the process
// there). Without it nothing is left.

#if defined(OJS_SHM_CELL)
#include OJS_SHM_CELL  // a test's own, on a memory model
#else
namespace ojs_shm::shm {
template <class T>
using Cell = std::atomic<T>;
}
#endif

/// For the few small functions of which every operation is made: the compiler's own measure gives
/// up in a large unit.
#define OJS_SHM_INLINE [[gnu::always_inline]] inline

namespace ojs_shm::shm {

#if defined(__x86_64__)
inline constexpr std::memory_order kStoreOrder = std::memory_order_release;
#else
inline constexpr std::memory_order kStoreOrder = std::memory_order_seq_cst;
#endif

enum class Access : std::uint8_t { kLoad, kStore, kRmw, kWritten };

#if defined(OJS_SHM_TEST_HOOKS)
using Hook = void (*)(Access access, Point point, const void* word);
extern constinit thread_local Hook thread_hook;
extern constinit Hook process_hook;
inline void touch(Access access, Point point, const void* word) {
  if (Hook hook = thread_hook ? thread_hook : process_hook; hook != nullptr) [[unlikely]]
    hook(access, point, word);
}
#else
inline void touch(Access, Point, const void*) {}
#endif

/// A shared word. Always lock-free, the same at every address.
template <class T>
class Atomic {
 public:
  static_assert(std::is_unsigned_v<T> && std::atomic<T>::is_always_lock_free,
                "a lock would not survive a SIGKILL");

  Atomic() = default;
  explicit constexpr Atomic(T value) : word_(value) {}

  OJS_SHM_INLINE T load() const {
    touch(Access::kLoad, Point::kNone, this);
    return word_.load(std::memory_order_seq_cst);
  }
  /// For words whose value decides nothing by itself: hints, statistics, expected values of a later
  /// cas.
  OJS_SHM_INLINE T load_relaxed() const {
    touch(Access::kLoad, Point::kNone, this);
    return word_.load(std::memory_order_relaxed);
  }
  /// load(), where it is the second half of a store and a load of another word.
  OJS_SHM_INLINE T load_seq_cst() const { return load(); }
  OJS_SHM_INLINE void store(T value, Point after) {
    touch(Access::kStore, after, this);
    word_.store(value, kStoreOrder);
    touch(Access::kWritten, after, this);
  }
  /// One strong attempt; on failure `expected` holds what was found.
  OJS_SHM_INLINE bool cas(T& expected, T desired, Point after) {
    touch(Access::kRmw, after, this);
    const bool done = word_.compare_exchange_strong(expected, desired, std::memory_order_seq_cst);
    if (done) touch(Access::kWritten, after, this);
    return done;
  }
  /// As cas, for callers that need no found value.
  OJS_SHM_INLINE bool cas_once(T expected, T desired, Point after) {
    return cas(expected, desired, after);
  }
  OJS_SHM_INLINE T fetch_add(T value, Point after) {
    touch(Access::kRmw, after, this);
    const T before = word_.fetch_add(value, std::memory_order_seq_cst);
    touch(Access::kWritten, after, this);
    return before;
  }
  OJS_SHM_INLINE T fetch_or(T bits, Point after) {
    touch(Access::kRmw, after, this);
    const T before = word_.fetch_or(bits, std::memory_order_seq_cst);
    touch(Access::kWritten, after, this);
    return before;
  }
  OJS_SHM_INLINE T fetch_and(T bits, Point after) {
    touch(Access::kRmw, after, this);
    const T before = word_.fetch_and(bits, std::memory_order_seq_cst);
    touch(Access::kWritten, after, this);
    return before;
  }
  OJS_SHM_INLINE T exchange(T value, Point after) {
    touch(Access::kRmw, after, this);
    const T before = word_.exchange(value, std::memory_order_seq_cst);
    touch(Access::kWritten, after, this);
    return before;
  }
  const void* address() const { return this; }

 private:
  Cell<T> word_;
};

using Word = Atomic<std::uint64_t>;
using Half = Atomic<std::uint32_t>;

/// Data that only an exclusive owner writes. Readers may look at any time and judge by the control
/// word afterwards, so it is read and written in whole machine words, with acquire and release: a
/// reader of what a new owner wrote also finds the control word that made it the owner changed.
/// No crash point: until the owner publishes the control word it is not relied on, and after that
/// it is not written.
template <class T>
class Plain {
 public:
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  OJS_SHM_INLINE T get() const { return cell_.load(std::memory_order_acquire); }
  OJS_SHM_INLINE void set(T value) { cell_.store(value, std::memory_order_release); }

 private:
  Cell<T> cell_;
};

/// A word that one thread writes and its repairer reads after its death: the kernel's proof of
/// death orders them, so the writer only keeps the compiler from moving it.
class LaneWord {
 public:
  std::uint64_t get() const { return cell_.load(std::memory_order_relaxed); }
  OJS_SHM_INLINE void set(std::uint64_t value, Point after) {
    touch(Access::kStore, after, this);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    cell_.store(value, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    touch(Access::kWritten, after, this);
  }
  /// As set, and living lanes that read it see all that was stored before it.
  OJS_SHM_INLINE void announce(std::uint64_t value, Point after) {
    touch(Access::kStore, after, this);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    cell_.store(value, kStoreOrder);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    touch(Access::kWritten, after, this);
  }
  /// Set and visible in order to living readers too (tallies are summed while their writers live).
  OJS_SHM_INLINE void set_ordered(std::uint64_t value, Point after) {
    touch(Access::kStore, after, this);
    cell_.store(value, kStoreOrder);
    touch(Access::kWritten, after, this);
  }
  /// Set before anything that this thread looks at next, in total order.
  std::uint64_t exchange(std::uint64_t value, Point after) {
    touch(Access::kRmw, after, this);
    const std::uint64_t before = cell_.exchange(value, std::memory_order_seq_cst);
    touch(Access::kWritten, after, this);
    return before;
  }
  std::uint64_t get_ordered() const { return cell_.load(std::memory_order_seq_cst); }

 private:
  Cell<std::uint64_t> cell_;
};

/// Two neighbours of four bytes as they stand in one word.
constexpr std::uint64_t both(std::uint32_t first, std::uint32_t second) {
  static_assert(std::endian::native == std::endian::little, "the first is the lower half");
  return first | std::uint64_t{second} << 32;
}
/// Sets both by one store; the first stands at a multiple of eight.
OJS_SHM_INLINE void set_both(Plain<std::uint32_t>& first, Plain<std::uint32_t>& second,
                             std::uint64_t word) {
#if defined(OJS_SHM_CELL)
  first.set(static_cast<std::uint32_t>(word));
  second.set(static_cast<std::uint32_t>(word >> 32));
#else
  using Both [[gnu::may_alias]] = std::uint64_t;
  (void)second;
  __atomic_store_n(reinterpret_cast<Both*>(&first), word, __ATOMIC_RELEASE);
#endif
}

/// Where every move of whatever width is a release when it stores and an acquire when it loads,
/// bytes need no words.
#if defined(__x86_64__) && !defined(OJS_SHM_CELL) && !defined(__SANITIZE_THREAD__)
inline constexpr bool kBytesInBulk = true;
#else
inline constexpr bool kBytesInBulk = false;
#endif

/// A copy that the compiler moves past no access of a shared word.
OJS_SHM_INLINE void copy_bulk(void* to, const void* from, std::size_t size) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(to, from, size);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// Copies two halves of so many machine words each, which may overlap.
template <class Unit, int kUnits>
OJS_SHM_INLINE void copy_ends(char* to, const char* from, std::size_t size) {
  static_assert(kUnits == 1 || kUnits == 2 || kUnits == 4);
  constexpr std::size_t kStep = sizeof(Unit);
  const char* const end = from + size - kUnits * kStep;
  char* const to_end = to + size - kUnits * kStep;
  Unit a, b, c, d, e, f, g, h;  // all are read before any is written, and none lies in memory
  std::memcpy(&a, from, kStep), std::memcpy(&e, end, kStep);
  if constexpr (kUnits > 1)
    std::memcpy(&b, from + kStep, kStep), std::memcpy(&f, end + kStep, kStep);
  if constexpr (kUnits > 2) {
    std::memcpy(&c, from + 2 * kStep, kStep), std::memcpy(&g, end + 2 * kStep, kStep);
    std::memcpy(&d, from + 3 * kStep, kStep), std::memcpy(&h, end + 3 * kStep, kStep);
  }
  std::memcpy(to, &a, kStep), std::memcpy(to_end, &e, kStep);
  if constexpr (kUnits > 1)
    std::memcpy(to + kStep, &b, kStep), std::memcpy(to_end + kStep, &f, kStep);
  if constexpr (kUnits > 2) {
    std::memcpy(to + 2 * kStep, &c, kStep), std::memcpy(to_end + 2 * kStep, &g, kStep);
    std::memcpy(to + 3 * kStep, &d, kStep), std::memcpy(to_end + 3 * kStep, &h, kStep);
  }
}
/// Up to 128 bytes without a call.
OJS_SHM_INLINE void copy_short(char* to, const char* from, std::size_t size) {
  using Vector = char __attribute__((vector_size(16)));
  if (size <= 16) {
    if (size >= 8) return copy_ends<std::uint64_t, 1>(to, from, size);
    if (size >= 4) return copy_ends<std::uint32_t, 1>(to, from, size);
  } else if (size <= 64) {
    return size > 32 ? copy_ends<Vector, 2>(to, from, size) : copy_ends<Vector, 1>(to, from, size);
  } else if (size <= 128) {
    return copy_ends<Vector, 4>(to, from, size);
  }
  std::memcpy(to, from, size);
}

/// Bytes between exclusive owners and readers that judge afterwards, as with Plain. `to`/`from` in
/// the segment are 8-aligned.
inline void copy_in(void* to, const void* from, std::size_t size) {
  if constexpr (kBytesInBulk) {
    copy_bulk(to, from, size);
    return;
  }
  auto* cells = static_cast<Cell<std::uint64_t>*>(to);
  const auto* bytes = static_cast<const char*>(from);
  std::uint64_t word = 0;
  for (; size >= 8; size -= 8, bytes += 8) {
    std::memcpy(&word, bytes, 8);
    (cells++)->store(word, std::memory_order_release);
  }
  if (size == 0) return;
  word = 0;
  std::memcpy(&word, bytes, size);
  cells->store(word, std::memory_order_release);
}

inline void copy_out(void* to, const void* from, std::size_t size) {
  if constexpr (kBytesInBulk) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    copy_short(static_cast<char*>(to), static_cast<const char*>(from), size);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return;
  }
  const auto* cells = static_cast<const Cell<std::uint64_t>*>(from);
  auto* bytes = static_cast<char*>(to);
  for (; size >= 8; size -= 8, bytes += 8) {
    const std::uint64_t word = (cells++)->load(std::memory_order_acquire);
    std::memcpy(bytes, &word, 8);
  }
  if (size == 0) return;
  const std::uint64_t word = cells->load(std::memory_order_acquire);
  std::memcpy(bytes, &word, size);
}

/// copy_in of three texts, one right after the other; all of them at most Most bytes.
template <std::size_t Most>
OJS_SHM_INLINE void copy_in(void* to, std::string_view a, std::string_view b, std::string_view c) {
  char staged[kBytesInBulk ? 1 : Most];
  char* at = kBytesInBulk ? static_cast<char*>(to) : staged;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  copy_short(at, a.data(), a.size());
  copy_short(at + a.size(), b.data(), b.size());
  if (!c.empty()) std::memcpy(at + a.size() + b.size(), c.data(), c.size());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if constexpr (!kBytesInBulk) copy_in(to, staged, a.size() + b.size() + c.size());
}

/// Flags inside one process (stop requests, fork marks): no shared memory, no crash point.
class LocalFlag {
 public:
  bool get() const noexcept { return value_.load(std::memory_order_acquire); }
  void set(bool value = true) noexcept { value_.store(value, std::memory_order_release); }

 private:
  std::atomic<bool> value_{false};
};

/// Flags of one process that its threads and signal handlers set.
class LocalFlags {
 public:
  bool any() const noexcept { return value_.load(std::memory_order_acquire) != 0; }
  bool has(std::uint32_t flag) const noexcept {
    return (value_.load(std::memory_order_acquire) & flag) != 0;
  }
  void set(std::uint32_t flag) noexcept { value_.fetch_or(flag, std::memory_order_release); }
  void clear(std::uint32_t flag) noexcept { value_.fetch_and(~flag, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> value_{0};
};

/// Asks for a cache line that will be written: it comes at once as its only copy, and not as a
/// shared one first.
inline void prefetch_for_write(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0"
               :
               // the compiler would emit it only for a named processor
               : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}
inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // yield is no pause on a core that runs one thread
#endif
}

static_assert(sizeof(Word) == 8 && sizeof(Half) == 4 && sizeof(LaneWord) == 8);

}  // namespace ojs_shm::shm
