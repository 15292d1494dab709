// SPDX-License-Identifier: Apache-2.0
//
// The C ABI as a C compiler and the dynamic linker see it: c_api_test.c compiled as C99 against the
// header and the shared library alone, the layout of the structs, and the exported symbols.

#if defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 says so of <regex> itself
#endif

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <ojs_shm/ojs_shm.h>
#include <ojs_shm/segment.hpp>

#include "tests/support/process.hpp"

namespace ojs_shm::test {
namespace {

// On LP64 every struct of ABI version 1 begins like this for ever; members may only be added
// behind.
static_assert(sizeof(ojs_shm_error) == 88 && offsetof(ojs_shm_error, depth) == 32 &&
              offsetof(ojs_shm_error, code) == 48);
static_assert(sizeof(ojs_shm_segment_options) == 72 &&
              offsetof(ojs_shm_segment_options, size_bytes) == 24 &&
              offsetof(ojs_shm_segment_options, mode) == 56 &&
              offsetof(ojs_shm_segment_options, max_waiting) == 64);
static_assert(sizeof(ojs_shm_args) == 40 && offsetof(ojs_shm_args, priority) == 24 &&
              offsetof(ojs_shm_args, flags) == 32);
static_assert(sizeof(ojs_shm_retry) == 40 && offsetof(ojs_shm_retry, max_attempts) == 16 &&
              offsetof(ojs_shm_retry, flags) == 32);
static_assert(sizeof(ojs_shm_job_spec) == 176 && offsetof(ojs_shm_job_spec, rate_limit) == 112 &&
              offsetof(ojs_shm_job_spec, enqueue_ttl_s) == 160 &&
              offsetof(ojs_shm_job_spec, retry) == 64 &&
              offsetof(ojs_shm_job_spec, priority) == 72 &&
              offsetof(ojs_shm_job_spec, flags) == 104);
static_assert(sizeof(ojs_shm_job_fields) == 152 && offsetof(ojs_shm_job_fields, priority) == 88 &&
              offsetof(ojs_shm_job_fields, timeout_ms) == 136);
static_assert(sizeof(ojs_shm_worker_options) == 80 &&
              offsetof(ojs_shm_worker_options, flags) == 32 &&
              offsetof(ojs_shm_worker_options, weights) == 40 &&
              offsetof(ojs_shm_worker_options, pool) == 48 &&
              offsetof(ojs_shm_worker_options, id) == 56 &&
              offsetof(ojs_shm_worker_options, total_concurrency) == 72);
static_assert(sizeof(ojs_shm_failure) == 64 && offsetof(ojs_shm_failure, flags) == 48);
static_assert(sizeof(ojs_shm_nack_outcome) == 24 && offsetof(ojs_shm_nack_outcome, state) == 20);
static_assert(sizeof(ojs_shm_queue_settings) == 48 && offsetof(ojs_shm_queue_settings, set) == 28);
static_assert(sizeof(ojs_shm_job_filter) == 88 && offsetof(ojs_shm_job_filter, flags) == 36 &&
              offsetof(ojs_shm_job_filter, created_before_ms) == 56 &&
              offsetof(ojs_shm_job_filter, error_type) == 80);
static_assert(sizeof(ojs_shm_fetch_request) == 72 &&
              offsetof(ojs_shm_fetch_request, tenant) == 40 &&
              offsetof(ojs_shm_fetch_request, flags) == 68);
static_assert(sizeof(ojs_shm_worker_report) == 96 && offsetof(ojs_shm_worker_report, state) == 64 &&
              offsetof(ojs_shm_worker_report, flags) == 88);
static_assert(sizeof(ojs_shm_event_options) == 104 && offsetof(ojs_shm_event_options, jobs) == 56 &&
              offsetof(ojs_shm_event_options, flags) == 96);
static_assert(sizeof(ojs_shm_bulk_report) == 32 && offsetof(ojs_shm_bulk_report, skipped) == 24);

const std::string kSource = OJS_SHM_SOURCE_DIR;
const std::string kInclude = kSource + "/worker_api/include";
const std::string kLibrary = OJS_SHM_LIB_DIR "/libojs_shm.so";

std::string contents(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<std::string> entries_of_the_header() {
  const std::string header = contents(kInclude + "/ojs_shm/ojs_shm.h") +
                             contents(kInclude + "/ojs_shm/resilience.h") +
                             contents(kInclude + "/ojs_shm/ojs_shm_full.h") +
                             contents(kInclude + "/ojs_shm/ojs_shm_cron.h") +
                             contents(kInclude + "/ojs_shm/ojs_shm_limits.h") +
                             contents(kInclude + "/ojs_shm/ojs_shm_jobs.h") +
                             contents(kInclude + "/ojs_shm/ojs_shm_observer.h") +
                             contents(kInclude + "/ojs_shm/ojs_shm_pools.h") +
                             contents(kInclude + "/ojs_shm/ojs_shm_proxy.h") +
                             contents(kInclude + "/ojs_shm/ojs_shm_transfer.h") +
                             contents(kInclude + "/ojs_shm/ojs_shm_workflows.h");
  const std::regex declaration(R"(OJS_SHM_API [^;(]*?(ojs_shm_\w+)\()");
  std::set<std::string> names;
  for (std::sregex_iterator at(header.begin(), header.end(), declaration), end; at != end; ++at)
    names.insert((*at)[1]);
  return names;
}

std::vector<std::string> compile_c(const std::string& source, const std::string& program) {
  return {
    "cc", "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-g",
        "-I" + kInclude, source, "-o", program, kLibrary, "-pthread", "-Wl,-rpath," OJS_SHM_LIB_DIR,
// A sanitized library needs its runtime in the program too.
#if defined(__SANITIZE_ADDRESS__)
        "-fsanitize=address"
#elif defined(__SANITIZE_THREAD__)
        "-fsanitize=thread"
#endif
  };
}

TEST(CApi, a_c99_program_uses_it_with_the_header_and_the_shared_library_alone) {
  const ScratchDirectory scratch;
  const Finished compiled =
      run(compile_c(kSource + "/tests/contract/c_api_test.c", scratch / "c_api_test"));
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;

  const Finished finished = run({scratch / "c_api_test", scratch.path()});
  EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  EXPECT_FALSE(finished.timed_out);
  std::istringstream lines(finished.out);
  int tests = 0;
  for (std::string line; std::getline(lines, line); ++tests)
    EXPECT_THAT(line, testing::StartsWith("ok "));
  EXPECT_GE(tests, 15);
}

TEST(CApi, the_example_of_the_document_runs) {
  const std::string document = contents(kSource + "/docs/c_api.md");
  const std::string opening = "<!-- c: example.c -->\n```c\n";
  const auto begin = document.find(opening);
  ASSERT_NE(begin, std::string::npos);
  const ScratchDirectory scratch;
  const auto end = document.find("\n```\n", begin);
  std::ofstream(scratch / "example.c")
      << document.substr(begin + opening.size(), end - begin - opening.size()) << '\n';

  const Finished compiled = run(compile_c(scratch / "example.c", scratch / "example"));
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const SegmentName name{"example", scratch.path()};
  const auto segment = Segment::create(name, {});
  ASSERT_TRUE(segment) << segment.error().message;
  ProcessOptions options;
  options.environment = {{"OJS_SHM_NAME", name.name}, {"OJS_SHM_DIR", name.dir}};
  const Finished finished = run({scratch / "example"}, options);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "mail.send [\"user@example.com\"], attempt 1\ncompleted\n");
}

TEST(CApi, the_c_test_calls_every_entry_of_the_header) {
  std::string program;
  for (const auto& file : std::filesystem::directory_iterator(kSource + "/tests/contract"))
    if (file.path().extension() == ".c") program += contents(file.path().string());
  const auto entries = entries_of_the_header();
  ASSERT_GE(entries.size(), 50U);
  for (const auto& entry : entries)
    EXPECT_NE(program.find(entry + "("), std::string::npos) << entry;
}

TEST(CApi, the_header_compiles_alone_as_c_and_as_cxx) {
  // with ojs_shm.h in it
  const std::string include = "-I" + kInclude, header = kInclude + "/ojs_shm/resilience.h";
  const ScratchDirectory scratch;
  const std::string object = scratch / "header.o";
  for (const std::string standard : {"-std=c99", "-std=c11", "-std=c17"}) {
    const Finished compiled =
        run({"cc", standard, include, "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-include",
             header, "-xc", "-c", "/dev/null", "-o", object});
    EXPECT_EQ(compiled.exit_code, 0) << standard << compiled.err;
  }
  for (const std::string standard : {"-std=c++98", "-std=c++11", "-std=c++20"}) {
    const Finished compiled = run({"c++", standard, include, "-Wall", "-Wextra", "-Werror",
                                   "-include", header, "-xc++", "-c", "/dev/null", "-o", object});
    EXPECT_EQ(compiled.exit_code, 0) << standard << compiled.err;
  }
}

TEST(CApi, the_library_exports_the_entries_of_the_headers_and_nothing_else) {
  const Finished listed =
      run({"nm", "-D", "-C", "--defined-only", "--without-symbol-versions", kLibrary});
  ASSERT_EQ(listed.exit_code, 0) << listed.err;
  const auto entries = entries_of_the_header();
  std::set<std::string> exported;
  std::istringstream lines(listed.out);
  // address, kind, name; the name of a C++ symbol may have spaces and begins with what it is
  // ("vtable for ...").
  const std::regex line_form(R"([0-9a-f]+ (\S) (.+))");
  const std::regex cxx_form("(?:typeinfo (?:name )?for |vtable for )?ojs_shm::(\\w+).*");
  std::string public_text;
  for (const auto& header : std::filesystem::directory_iterator(kInclude + "/ojs_shm")) {
    public_text += contents(header.path().string());
  }
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(line, parts, line_form)) << line;
    const std::string name = parts[2];
    if (parts[1] == "A") continue;  // the name of the version itself
    if (entries.contains(name)) {
      exported.insert(name);
    } else {
      ASSERT_TRUE(std::regex_match(name, parts, cxx_form)) << name;
      // A class or function that a public header declares as exported.
      const std::regex declared("OJS_SHM_API [^;{]*\\b" + parts[1].str() + "\\b");
      EXPECT_TRUE(std::regex_search(public_text, declared)) << name;
    }
  }
  EXPECT_EQ(exported, entries);
}

TEST(CApi, the_library_carries_a_versioned_soname) {
  const Finished read = run({"readelf", "-d", kLibrary});
  ASSERT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(read.out, testing::ContainsRegex("SONAME.*\\[libojs_shm\\.so\\.[0-9]+\\.[0-9]+\\]"));
}

}  // namespace
}  // namespace ojs_shm::test
