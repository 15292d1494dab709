// SPDX-License-Identifier: Apache-2.0
#include "engine/rules/uuid.hpp"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/seed.hpp"

namespace ojs_shm::engine {
namespace {

constexpr std::string_view kExample = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f";

std::uint64_t low_bits_of(std::uint64_t bits, unsigned count) { return bits >> (64 - count); }

TEST(JobId, text_is_read_into_its_bits_and_back) {
  const auto id = parse_id(kExample);
  ASSERT_TRUE(id);
  EXPECT_EQ(id->hi, 0x019461a81a2b7c3dU);
  EXPECT_EQ(id->lo, 0x8e4f5a6b7c8d9e0fU);
  EXPECT_EQ(to_string(*id), kExample);
}

TEST(JobId, printing_fills_36_characters_and_no_more) {
  char buffer[kJobIdLength + 1];
  buffer[kJobIdLength] = '#';
  print_id(*parse_id(kExample), std::span<char, kJobIdLength>(buffer, kJobIdLength));
  EXPECT_EQ(std::string_view(buffer, kJobIdLength), kExample);
  EXPECT_EQ(buffer[kJobIdLength], '#');
}

TEST(JobId, only_lower_case_version_7_of_variant_10_is_an_id) {
  for (const std::string_view text : {"", "not-a-uuid-at-all",
                                      "550e8400-e29b-41d4-a716-446655440000",   // version 4
                                      "019461A8-1A2B-7C3D-8E4F-5A6B7C8D9E0F",   // upper case
                                      "019461a8-1a2b-7c3d-7e4f-5a6b7c8d9e0f",   // variant 01
                                      "019461a8-1a2b-7c3d-ce4f-5a6b7c8d9e0f",   // variant 11
                                      "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0",    // too short
                                      "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0ff",  // too long
                                      " 19461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f",   // a space
                                      // a dash out of place
                                      "019461a81-a2b-7c3d-8e4f-5a6b7c8d9e0f",
                                      "019461a8_1a2b_7c3d_8e4f_5a6b7c8d9e0f",   // other dashes
                                      "{19461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0}",   // braces
                                      "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0g"})  // not hexadecimal
    EXPECT_FALSE(parse_id(text)) << text;
  for (const std::string_view text :
       {"00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff"})
    EXPECT_TRUE(parse_id(text)) << text;
}

TEST(JobId, one_changed_character_never_reads_as_the_same_id) {
  const JobId id = *parse_id(kExample);
  for (std::size_t place = 0; place < kJobIdLength; ++place) {
    for (int c = 0; c < 256; ++c) {
      std::string text(kExample);
      if (text[place] == static_cast<char>(c)) continue;
      text[place] = static_cast<char>(c);
      const auto other = parse_id(text);
      if (!other) continue;
      ASSERT_NE(*other, id) << text;
      ASSERT_EQ(to_string(*other), text);
    }
  }
}

TEST(JobId, the_parts_come_back_out_and_the_text_is_a_uuid7) {
  test::Seeded random;
  for (int i = 0; i < 50'000; ++i) {
    const IdParts made{.unix_ms = low_bits_of(random.bits(), 48),
                       .seq = static_cast<std::uint32_t>(low_bits_of(random.bits(), kIdSeqBits)),
                       .slot = static_cast<std::uint32_t>(low_bits_of(random.bits(), kIdSlotBits)),
                       .generation = static_cast<std::uint32_t>(random.bits())};
    const std::uint64_t salt = random.bits();
    const JobId id = make_id(made.unix_ms, made.seq, made.slot, made.generation, salt);
    ASSERT_EQ(parts(id, salt), made);
    ASSERT_EQ(parse_id(to_string(id)), id);
  }
}

TEST(JobId, the_time_is_readable_as_in_any_uuid7) {
  EXPECT_EQ(to_string(make_id(0x0123456789ab, 0, 0, 0, 0)), "01234567-89ab-7000-8000-000000000000");
  EXPECT_EQ(to_string(make_id(0, (1u << 18) - 1, 0, 0, 0)), "00000000-0000-7fff-bf00-000000000000");
  EXPECT_EQ(to_string(make_id(0, 0, (1u << 24) - 1, 1, 0)), "00000000-0000-7000-80ff-ffff00000001");
}

TEST(JobId, bits_beyond_a_part_change_no_other_part) {
  EXPECT_EQ(make_id(1ULL << 48, 1u << 18, 1u << 24, 0, 1ULL << 56), make_id(0, 0, 0, 0, 0));
}

TEST(JobId, parts_of_what_is_no_uuid7_are_nothing) {
  EXPECT_EQ(parts({.hi = 0, .lo = 0}, 0), std::nullopt);
  EXPECT_EQ(parts({.hi = 0x7000, .lo = 0}, 0), std::nullopt);
  EXPECT_NE(parts({.hi = 0x7000, .lo = 1ULL << 63}, 0), std::nullopt);
}

TEST(JobId, ids_grow_with_time_and_sequence_whatever_slot_and_salt_are) {
  test::Seeded random;
  for (int i = 0; i < 50'000; ++i) {
    const std::uint64_t salt = random.bits();
    const auto ms = static_cast<std::uint64_t>(random.between(0, 3));
    const auto seq = static_cast<std::uint32_t>(random.between(0, 200));
    const bool same_ms = random.coin();
    const JobId earlier = make_id(ms, seq, static_cast<std::uint32_t>(random.bits()),
                                  static_cast<std::uint32_t>(random.bits()), salt);
    const JobId later = make_id(same_ms ? ms : ms + 1, same_ms ? seq + 1 : 0,
                                static_cast<std::uint32_t>(random.bits()),
                                static_cast<std::uint32_t>(random.bits()), salt);
    ASSERT_LT(earlier, later);
    ASSERT_LT(to_string(earlier), to_string(later));
  }
}

TEST(IdClock, starts_each_millisecond_at_zero) {
  IdClock clock;
  EXPECT_EQ(clock.next(1000), (IdClock::Stamp{1000, 0}));
  EXPECT_EQ(clock.next(1000), (IdClock::Stamp{1000, 1}));
  EXPECT_EQ(clock.next(1001), (IdClock::Stamp{1001, 0}));
}

TEST(IdClock, never_goes_back_with_the_clock) {
  IdClock clock;
  EXPECT_EQ(clock.next(1000), (IdClock::Stamp{1000, 0}));
  EXPECT_EQ(clock.next(10), (IdClock::Stamp{1000, 1}));
  EXPECT_EQ(clock.next(0), (IdClock::Stamp{1000, 2}));
}

TEST(IdClock, runs_ahead_by_a_millisecond_when_one_is_used_up) {
  IdClock clock;
  for (std::uint32_t i = 0; i < 1u << kIdSeqBits; ++i)
    ASSERT_EQ(clock.next(5), (IdClock::Stamp{5, i}));
  EXPECT_EQ(clock.next(5), (IdClock::Stamp{6, 0}));
  EXPECT_EQ(clock.next(6), (IdClock::Stamp{6, 1}));
  EXPECT_EQ(clock.next(7), (IdClock::Stamp{7, 0}));
}

TEST(IdClock, ids_strictly_increase_under_a_clock_that_jumps) {
  test::Seeded random;
  IdClock clock;
  std::uint64_t now = 1'000'000;
  JobId before;
  for (int i = 0; i < 1'000'000; ++i) {
    if (random.between(0, 99'999) == 0) now += static_cast<std::uint64_t>(random.between(-5, 5));
    const IdClock::Stamp stamp = clock.next(now);
    const JobId id =
        make_id(stamp.unix_ms, stamp.seq, static_cast<std::uint32_t>(random.bits()), 0, 0);
    ASSERT_LT(before, id);
    before = id;
  }
}

}  // namespace
}  // namespace ojs_shm::engine
