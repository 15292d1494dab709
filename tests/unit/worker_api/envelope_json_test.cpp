// SPDX-License-Identifier: Apache-2.0
#include "worker_api/json/envelope_json.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>

#include "tests/support/seed.hpp"

namespace ojs_shm::json {
namespace {

std::string json_string(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

std::string random_space(test::Seeded& random) {
  std::string space(static_cast<std::size_t>(random.between(0, 2)), ' ');
  for (char& c : space) c = " \t\n\r"[random.between(0, 3)];
  return space;
}

// A random value twice: with white space strewn in, and without. Strings hold what could mislead a
// counter of brackets.
struct Twin {
  std::string spaced, bare;
};
Twin random_value(test::Seeded& random, int depth) {
  constexpr std::string_view kLeaves[] = {
      "null",  "true",     "false",         "0",       "-1.5e+10",      "12345678901234567890123",
      R"("")", R"("a b")", R"("}]\",:{[")", R"("\\")", R"("\u00e9 \n")"};
  const std::int64_t kind = depth == 0 ? 0 : random.between(0, 2);
  Twin twin;
  if (kind == 0) {
    twin.bare = kLeaves[random.between(0, std::ssize(kLeaves) - 1)];
    twin.spaced = random_space(random) + twin.bare + random_space(random);
    return twin;
  }
  const bool object = kind == 1;
  twin.bare = twin.spaced = object ? "{" : "[";
  for (std::int64_t i = 0, count = random.between(0, 4); i < count; ++i) {
    const std::string comma = i == 0 ? "" : ",";
    const std::string key = object ? "\"k" + std::to_string(i) + "\"" : "";
    const Twin element = random_value(random, depth - 1);
    twin.bare += comma + key + (object ? ":" : "") + element.bare;
    twin.spaced += comma + random_space(random) + key + random_space(random) + (object ? ":" : "") +
                   element.spaced;
  }
  twin.bare += object ? "}" : "]";
  twin.spaced = random_space(random) + twin.spaced + random_space(random) + (object ? "}" : "]") +
                random_space(random);
  return twin;
}

TEST(Json, what_the_grammar_allows) {
  for (const std::string_view text :
       {"null", "true", "0", "-0.5e-3", R"("")", "[]", "{}", " [1, {\"a\": null}] \n",
        R"("\ud83d\ude00")", "\"\xf0\x9f\x98\x80\"", "18446744073709551616"})
    EXPECT_TRUE(check(text)) << text;
}

TEST(Json, what_it_does_not) {
  for (const std::string_view text : {"",        " ",        "nul",        "01",
                                      "1.",      "[1,]",     "{\"a\":1,}", "{a:1}",
                                      "{} {}",   "'a'",      "\"a",        "[1",
                                      "// x\n1", "NaN",      "\"\n\"",     R"("\ud83d")",
                                      R"("\x")", "\"\xff\"", "\"\xc3\"",   "\"\xed\xa0\x80\"",
                                      "1e999",   "[-1e400]"})
    EXPECT_EQ(check(text).code(), Code::kInvalid) << text;
  EXPECT_FALSE(check(std::string_view("1\0", 2)));
}

/// Whether each number in it is one that a reader could hold.
bool is_finite(const boost::json::value& value) {
  if (const double* number = value.if_double()) return !std::isinf(*number);
  if (const auto* array = value.if_array())
    return std::all_of(array->begin(), array->end(), is_finite);
  const auto* object = value.if_object();
  return object == nullptr || std::all_of(object->begin(), object->end(), [](const auto& member) {
           return is_finite(member.value());
         });
}

// check() sees most JSON without the parser. Method: valid texts, each damaged in one place; both
// must judge alike.
TEST(Json, a_damaged_text_is_judged_as_the_parser_judges_it) {
  test::Seeded random;
  constexpr std::string_view kBytes =
      "[]{}\",:\\ \n0123456789.-+eEtrufalsn/\x01\x7f\x80\xc3\xa9\xff";
  boost::json::parse_options options;
  options.max_depth = kMaxDepth;
  int accepted = 0, refused = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text = random_value(random, 3).spaced;
    const auto at = static_cast<std::size_t>(random.between(0, std::ssize(text) - 1));
    const char byte = kBytes[static_cast<std::size_t>(random.between(0, std::ssize(kBytes) - 1))];
    switch (random.between(0, 2)) {
      case 0: text[at] = byte; break;
      case 1: text.insert(at, 1, byte); break;
      default: text.erase(at, 1);
    }
    boost::json::error_code why;
    const auto value =
        boost::json::parse(boost::json::string_view(text.data(), text.size()), why, {}, options);
    const bool reads = !why && is_finite(value);
    ASSERT_EQ(check(text).ok(), reads) << text;
    ++(reads ? accepted : refused);
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(Json, the_error_names_the_place) {
  const Status status = check("{\"type\": oops}");
  EXPECT_EQ(status.error().subject, "json");
  EXPECT_NE(status.error().message.find("at byte 9"), std::string::npos) << status.error().message;
}

TEST(Json, depth_is_bounded) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(check(nested(kMaxDepth)));
  EXPECT_FALSE(check(nested(kMaxDepth + 1)));
  EXPECT_FALSE(check(nested(1'000'000)));
}

TEST(Json, slices_keep_every_character_of_a_value) {
  const std::string_view text =
      R"( { "a" : 1.0 , "b\"c":{"d":"},{"},"e":[1, 2] , "f":12345678901234567890 } )";
  ASSERT_TRUE(check(text));
  const std::vector<Member> members = members_of(text);
  ASSERT_EQ(members.size(), 4u);
  EXPECT_EQ(members[0].name, "a");
  EXPECT_EQ(members[0].value, "1.0");
  EXPECT_EQ(members[1].name, "b\"c");
  EXPECT_EQ(members[1].value, R"({"d":"},{"})");
  EXPECT_EQ(members[2].value, "[1, 2]");
  EXPECT_EQ(members[3].value, "12345678901234567890");
  EXPECT_TRUE(members_of(" { } ").empty());
  EXPECT_TRUE(elements_of("[\n]").empty());
}

TEST(Json, names_are_compared_after_their_escapes) {
  EXPECT_EQ(members_of(R"({"pri\u006frity":1})")[0].name, "priority");
}

TEST(Json, any_value_is_compacted_and_cut_into_its_parts) {
  test::Seeded random;
  for (int i = 0; i < 5'000; ++i) {
    const Twin twin = random_value(random, 4);
    ASSERT_TRUE(check(twin.spaced)) << twin.spaced;
    ASSERT_EQ(compact(twin.spaced), twin.bare);
    std::string again;
    if (kind_of(twin.spaced) == Kind::kObject) {
      ObjectWriter writer(again);
      for (const Member& member : members_of(twin.spaced)) writer.value(member.name, member.value);
      writer.close();
    } else if (kind_of(twin.spaced) == Kind::kArray) {
      for (const std::string_view element : elements_of(twin.spaced))
        again += (again.empty() ? "[" : ",") + compact(element);
      again += again.empty() ? "[]" : "]";
    } else {
      again = compact(twin.spaced);
    }
    ASSERT_EQ(again, twin.bare);
  }
}

// Whatever text comes in: it is refused, or every slice of it is a value in its own right.
TEST(Json, any_text_is_refused_or_cut_into_values) {
  test::Seeded random;
  constexpr std::string_view kLetters = "{}[]\",:\\ u0123e-.truefalsn\n\x80";
  int accepted = 0;
  for (int i = 0; i < 300'000; ++i) {
    std::string text(static_cast<std::size_t>(random.between(0, 10)), ' ');
    for (char& c : text)
      c = kLetters[static_cast<std::size_t>(random.between(0, std::ssize(kLetters) - 1))];
    if (!check(text)) continue;
    ++accepted;
    if (kind_of(text) == Kind::kObject) {
      for (const Member& member : members_of(text)) ASSERT_TRUE(check(member.value)) << text;
    } else if (kind_of(text) == Kind::kArray) {
      for (const std::string_view element : elements_of(text)) ASSERT_TRUE(check(element)) << text;
    }
    ASSERT_TRUE(check(compact(text))) << text;
  }
  EXPECT_GT(accepted, 100) << "the generator hardly ever makes JSON";
}

TEST(Json, scalars_are_read_as_what_they_are_written_as) {
  EXPECT_EQ(string_of(R"( "a\nb" )"), "a\nb");
  EXPECT_EQ(string_of("1"), std::nullopt);
  EXPECT_EQ(bool_of("true"), true);
  EXPECT_EQ(bool_of(" false"), false);
  EXPECT_EQ(bool_of("0"), std::nullopt);
  EXPECT_EQ(number_of("2.5e1"), 25.0);
  EXPECT_EQ(number_of("-7"), -7.0);
  EXPECT_EQ(number_of("\"7\""), std::nullopt);
  EXPECT_EQ(integer_of("-7"), -7);
  for (const std::string_view value : {"1.5", "1.0", "1e3", "\"1\"", "true", "null", "[1]"})
    EXPECT_EQ(integer_of(value), std::nullopt) << value;
}

TEST(Json, integers_beyond_64_bits_read_as_the_limit) {
  EXPECT_EQ(integer_of("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(integer_of("9223372036854775808"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(integer_of("-99999999999999999999"), std::numeric_limits<std::int64_t>::min());
}

TEST(Json, any_bytes_become_a_string_that_reads_back) {
  test::Seeded random;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(static_cast<std::size_t>(random.between(0, 12)), ' ');
    for (char& c : bytes)
      c = static_cast<char>(random.coin() ? random.between(0, 255) : random.between('a', 'z'));
    const std::string text = json_string(bytes);
    ASSERT_TRUE(check(text)) << text;
    const bool plain = check('"' + bytes + '"').ok() && bytes.find('\\') == std::string::npos;
    if (plain) {
      ASSERT_EQ(string_of(text), bytes);
    }
    ASSERT_EQ(json_string(*string_of(text)), text);
  }
}

// Texts are passed over sixteen bytes at a time, and the rest of them in other ways.
TEST(Json, what_does_not_stand_for_itself_is_seen_at_each_place_of_a_text) {
  const std::pair<std::string, std::string> marks[] = {
      {"\"", "\\\""}, {"\\", "\\\\"}, {"\n", "\\n"}, {"\x01", "\\u0001"}, {"\xc3\xa9", "\xc3\xa9"}};
  for (std::size_t length = 0; length < 40; ++length)
    for (std::size_t place = 0; place <= length; ++place)
      for (const auto& [mark, written] : marks) {
        const std::string before(place, 'a'), after(length - place, 'b');
        const std::string quoted = '"' + before + written + after + '"';
        ASSERT_EQ(json_string(before + mark + after), quoted);
        ASSERT_EQ(string_of(quoted), before + mark + after);
        const std::string object = "{\"k\":" + quoted + ",\"l\":1}";
        ASSERT_EQ(members_of(object)[0].value, quoted);
        ASSERT_EQ(members_of(object)[1].name, "l");
        ASSERT_EQ(compact("[ " + quoted + "]"), "[" + quoted + "]");
      }
}

TEST(Json, a_blank_is_taken_out_at_each_place_of_a_text) {
  for (std::size_t length = 0; length < 40; ++length)
    for (std::size_t place = 0; place <= length; ++place)
      for (const char blank : {' ', '\t', '\n', '\r'}) {
        const std::string before(place, '['), after(length - place, ']');
        ASSERT_EQ(compact(before + blank + after), before + after);
      }
}

TEST(Json, bytes_that_are_no_utf8_become_replacement_characters) {
  EXPECT_EQ(json_string("a\xff"), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(json_string("\xc3"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(json_string("\xc0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\"") << "an overlong zero";
  EXPECT_EQ(json_string("\xe2\x82\xac"), "\"\xe2\x82\xac\"");
  EXPECT_EQ(json_string(std::string_view("\0\x1f\"\\", 4)), R"("\u0000\u001f\"\\")");
}

TEST(Json, an_object_is_written_member_by_member) {
  std::string out;
  ObjectWriter writer(out);
  writer.text("a", "x\"y");
  writer.number("b", std::int64_t{-3});
  writer.number("c", 0.25);
  writer.number("left out", std::nan(""));
  writer.boolean("d", true);
  writer.value("e", " [ 1 , \" \" ] ");
  ObjectWriter inner(writer.open("f"));
  inner.close();
  writer.close();
  EXPECT_EQ(out, R"({"a":"x\"y","b":-3,"c":0.25,"d":true,"e":[1," "],"f":{}})");
}

}  // namespace
}  // namespace ojs_shm::json
