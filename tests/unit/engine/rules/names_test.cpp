// SPDX-License-Identifier: Apache-2.0
#include "engine/rules/names.hpp"

#include <regex.h>

#include <string>

#include <gtest/gtest.h>

#include "tests/support/seed.hpp"

namespace ojs_shm::engine {
namespace {

// Names that are mostly made of what is allowed, so that both answers come up.
std::string random_name(test::Seeded& random) {
  constexpr std::string_view kLetters = "abz09.._-- AZ!\x7f\xc3";
  std::string name(static_cast<std::size_t>(random.between(0, 8)), 'a');
  for (char& c : name)
    if (random.coin())
      c = kLetters[static_cast<std::size_t>(random.between(0, std::ssize(kLetters) - 1))];
  return name;
}

// The specification's own words for a name, as a regular expression of POSIX.
class Pattern {
 public:
  explicit Pattern(const char* text) {
    EXPECT_EQ(regcomp(&compiled_, text, REG_EXTENDED | REG_NOSUB), 0) << text;
  }
  ~Pattern() { regfree(&compiled_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  bool matches(const std::string& name) const {
    return regexec(&compiled_, name.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t compiled_{};
};

TEST(Names, types_of_the_suites_and_of_qo_are_valid) {
  for (const std::string_view type :
       {"email.send", "send_alert", "dlq.test.manual-retry", "a", "a.b.c1", "a-b_c.d-"})
    EXPECT_TRUE(valid_type(type)) << type;
}

TEST(Names, malformed_types_are_not) {
  for (const std::string_view type :
       {"", "Email.Send", "email send", "1email.send", "email@send!", ".a", "a.", "a..b", "a.1b",
        "-a", "_a", "a.-b", "\xc3\xa9t\xc3\xa9"})
    EXPECT_FALSE(valid_type(type)) << type;
  EXPECT_FALSE(valid_type(std::string_view("a\0b", 3)));
}

TEST(Names, queues_of_the_suites_are_valid) {
  for (const std::string_view name :
       {"default", "conformance-nack-error-test", "0", "1.high", "a.", "a-"})
    EXPECT_TRUE(valid_queue_name(name)) << name;
}

TEST(Names, malformed_queue_names_are_not) {
  for (const std::string_view name :
       {"", "Default", "my_queue!", "my_queue", "-invalid", ".a", "my queue"})
    EXPECT_FALSE(valid_queue_name(name)) << name;
}

TEST(Names, lengths_are_bounded) {
  EXPECT_TRUE(valid_type(std::string(255, 'a')));
  EXPECT_FALSE(valid_type(std::string(256, 'a')));
  EXPECT_TRUE(valid_queue_name(std::string(128, 'a')));
  EXPECT_FALSE(valid_queue_name(std::string(129, 'a')));
}

TEST(Names, the_loops_agree_with_the_patterns_of_the_specification) {
  test::Seeded random;
  const Pattern type_pattern(R"(^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$)");
  const Pattern queue_pattern("^[a-z0-9][a-z0-9.-]*$");
  int valid = 0;
  for (int i = 0; i < 30'000; ++i) {
    const std::string name = random_name(random);
    ASSERT_EQ(valid_type(name), type_pattern.matches(name)) << name;
    ASSERT_EQ(valid_queue_name(name), queue_pattern.matches(name)) << name;
    valid += valid_type(name);
  }
  EXPECT_GT(valid, 300) << "the generator hardly ever makes a valid name";
}

}  // namespace
}  // namespace ojs_shm::engine
