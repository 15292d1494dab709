// SPDX-License-Identifier: Apache-2.0
#include "tests/instructions/trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include "tests/crash/scene.hpp"

extern "C" const char __executable_start,
    etext;  // NOLINT: the linker's names for where this program's code lies

namespace ojs_shm::test {
namespace {

/// Tells whether the segment looks otherwise than the last time.
class Watch {
 public:
  explicit Watch(const Segment& segment)
      : now_(reinterpret_cast<const char*>(&segment.attachment()->segment().header())),
        before_(now_, now_ + segment.size_bytes()) {}
  bool changed() {
    if (std::memcmp(now_, before_.data(), before_.size()) == 0) return false;
    std::memcpy(before_.data(), now_, before_.size());
    return true;
  }

 private:
  const char* now_;
  std::vector<char> before_;
};

constexpr bool in(std::uint8_t byte, std::initializer_list<std::uint8_t> list) {
  return std::find(list.begin(), list.end(), byte) != list.end();
}

/// False when the instruction surely writes to nothing but registers and the stack: most do not,
/// and a look at the whole segment takes longer than a step. Where it is not sure it says yes. The
/// child's code lies where ours lies.
bool may_write([[maybe_unused]] std::uintptr_t address) {
#if defined(__x86_64__)
  const auto* code = reinterpret_cast<const std::uint8_t*>(address);
  unsigned rex = 0;
  if ((*code & 0xF0) == 0x40) rex = *code++;
  // mov, lea, add, sub, and, or, xor, cmp and test into a register; push, pop, call, ret and jumps
  if (in(*code, {0x03, 0x0B, 0x23, 0x2B, 0x33, 0x38, 0x39, 0x3A, 0x3B, 0x3C, 0x3D, 0x63,
                 0x84, 0x85, 0x8A, 0x8B, 0x8D, 0x90, 0xA8, 0xA9, 0xC3, 0xE8, 0xE9, 0xEB}))
    return false;
  if (in(*code & 0xF0, {0x50, 0x70}) || (*code & 0xF8) == 0xB8) return false;
  // cmov, jcc, imul, movzx and movsx
  if (*code == 0x0F)
    return !in(code[1] & 0xF0, {0x40, 0x80}) && !in(code[1], {0xAF, 0xB6, 0xB7, 0xBE, 0xBF});
  // the same as at first, from a register or a number: to a register, or to a place given by the
  // stack pointer, which is number 4 while REX.B does not make it 12
  if (in(*code, {0x01, 0x09, 0x21, 0x29, 0x31, 0x80, 0x81, 0x83, 0x88, 0x89, 0xC1, 0xC6, 0xC7, 0xD1,
                 0xF6, 0xF7}))
    return code[1] >> 6 != 3 && ((code[1] & 7) != 4 || (code[2] & 7) != 4 || (rex & 1) != 0);
#endif
  return true;
}

}  // namespace

std::unique_ptr<Stepped> start(const Operation& operation, const SegmentName& where,
                               bool complains) {
  Hands* hands = nullptr;  // the child's, and never destroyed: a killed process closes nothing
  return std::make_unique<Stepped>(
      [&] {
        hands = new Hands(where);
        operation.prepare(*hands);
      },
      [&] { operation.act(*hands); }, complains);
}

Trace::Trace(const Operation& operation, const SegmentName& where, bool doubts) {
  {
    Quiet quiet(where);
    const auto child = start(operation, where);
    const Jobs before = jobs_in(quiet.segment);
    Watch watch(quiet.segment);
    std::uint32_t changes = 0;
    add(child->at(), changes);
    while (child->acting()) {
      const std::uintptr_t address = child->at();
      const bool look = may_write(address);
      child->step();
      const bool changed = (look || doubts) && watch.changed();
      if (changed && !look)
        throw std::logic_error(operation.name +
                               ": what surely writes nothing did, after instruction " +
                               std::to_string(instructions()));
      add(child->at(), changes += changed);
    }
    if (const std::string problem = child->finish(); !problem.empty())
      throw std::runtime_error(operation.name + " " + problem);
    ends_any_number_ = operation.ends_all;
    for (const QueueInfo& queue : Observer::attach(quiet.segment).value().queues())
      ends_any_number_ = ends_any_number_ || queue.strategy == BackpressureStrategy::kDropOldest;
    ends_ = ended(before, quiet.segment);
  }
  if (const auto removed = remove_segment(where, Removal::kWithJobs); !removed.ok())
    throw std::runtime_error(removed.error().message);
}

void Trace::add(std::uintptr_t address, std::uint32_t changes) {
  static const auto begin = reinterpret_cast<std::uintptr_t>(&__executable_start),
                    end = reinterpret_cast<std::uintptr_t>(&etext);
  at_.push_back(address);
  which_.push_back(
      numbers_.try_emplace(address, static_cast<std::uint32_t>(numbers_.size())).first->second);
  seen_.push_back(changes);
  own_ += address >= begin && address < end;
}

std::vector<std::size_t> Trace::after_changes() const {
  std::vector<std::size_t> moments;
  for (std::size_t n = 1; n < seen_.size(); ++n)
    if (seen_[n] != seen_[n - 1]) moments.push_back(n);
  return moments;
}

/// Single steps are slow, so it runs freely from place to place: to one that comes rarely on the
/// way and not long before the end, from there to the next, and steps when no place is near enough.
/// Each time that the place comes is a stop.
bool Trace::repeat(Stepped& child, std::size_t n) const {
  std::size_t done = 0;
  for (bool free = true; free && child.acting() && n > done;) {
    std::vector<std::uint32_t> times(numbers_.size(), 0);
    std::size_t best = done;
    std::uint32_t time = 0;
    double least = static_cast<double>(n - done);
    for (std::size_t m = done; m <= n; ++m) {
      const std::uint32_t now = ++times[which_[m]];
      const double rest = static_cast<double>(n - m);
      // a guess: loops within loops
      const double stops = now + std::min(rest, 4 * std::sqrt(rest));
      if (m > done && stops < least) best = m, time = now, least = stops;
    }
    free = best > done && child.run_to(at_[best], time);
    if (free) done = best;
  }
  for (; done < n && child.acting(); ++done) child.step();
  return child.at() == at_[n];
}

const Operation& operation_named(const std::string& name) {
  for (const Operation& operation : operations())
    if (operation.name == name) return operation;
  throw std::invalid_argument("no operation " + name);
}

std::vector<std::string> names_of_operations() {
  std::vector<std::string> names;
  for (const Operation& operation : operations()) names.push_back(operation.name);
  return names;
}

const Trace& trace_of(const std::string& operation, const SegmentName& where) {
  static std::map<std::string, Trace> all;
  const auto known = all.find(operation);
  return known != all.end()
             ? known->second
             : all.emplace(operation, Trace(operation_named(operation), where)).first->second;
}

std::size_t stride() {
  const char* form = std::getenv("OJS_SHM_INSTRUCTIONS");
  return form != nullptr ? std::strtoul(form, nullptr, 10) : 0;
}

}  // namespace ojs_shm::test
