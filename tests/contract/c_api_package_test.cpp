// SPDX-License-Identifier: Apache-2.0
//
// What `cmake --install` leaves is all that a user's project needs: found by CMake's find_package
// and by pkg-config.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "tests/support/process.hpp"

namespace ojs_shm::test {
namespace {

namespace fs = std::filesystem;

const std::string kBuild = fs::path(OJS_SHM_LIB_DIR).parent_path().string();

#if defined(__SANITIZE_ADDRESS__)
const std::string kSanitizer = "-fsanitize=address";
#elif defined(__SANITIZE_THREAD__)
const std::string kSanitizer = "-fsanitize=thread";
#else
const std::string kSanitizer;
#endif

/// One installation for all tests of this file, in a directory that goes away.
class Package : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<ScratchDirectory>();
    const Finished installed = run({"cmake", "--install", kBuild, "--prefix", prefix()});
    ASSERT_EQ(installed.exit_code, 0) << installed.out << installed.err;
  }
  static void TearDownTestSuite() { scratch_.reset(); }

  static std::string prefix() { return *scratch_ / "prefix"; }

  static std::string folder_of(const std::string& file) {
    for (const auto& entry : fs::recursive_directory_iterator(prefix())) {
      if (entry.path().filename() == file) return entry.path().parent_path().string();
    }
    ADD_FAILURE() << file << " was not installed";
    return {};
  }

  static void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }

  static Finished run_with(const std::string& variable, const std::string& value,
                           const std::vector<std::string>& argv) {
    ProcessOptions options;
    options.environment = {{variable, value}};
    return run(argv, options);
  }

  static void expect_version(const std::string& program) {
    const Finished finished = run_with("LD_LIBRARY_PATH", folder_of("libojs_shm.so"), {program});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(finished.out, "0 ojs_shm\n");
  }

  static std::unique_ptr<ScratchDirectory> scratch_;
};

std::unique_ptr<ScratchDirectory> Package::scratch_;

const char kCProgram[] = R"(#include <ojs_shm/ojs_shm.h>
#include <stdio.h>
int main(void) {
  printf("%d ojs_shm\n", ojs_shm_check_abi(OJS_SHM_ABI_VERSION));
  return ojs_shm_version()[0] == 0;
}
)";

const char kCxxProgram[] = R"(#include <ojs_shm/admin.hpp>
#include <ojs_shm/observer.hpp>
#include <ojs_shm/producer.hpp>
#include <ojs_shm/runtime.hpp>
#include <ojs_shm/worker.hpp>
#include <cstdio>
int main() {
  const auto absent = ojs_shm::Producer::attach(ojs_shm::SegmentName{"no-such-segment", "/"});
  if (absent || absent.code() != ojs_shm::Code::kCannotAttach) return 1;
  const ojs_shm::Job none;
  std::printf("%d ojs_shm\n", none.valid() ? 1 : 0);
}
)";

const char kCMakeProject[] = R"(cmake_minimum_required(VERSION 3.16)
project(consumer LANGUAGES C CXX)
find_package(ojs_shm 0.1 REQUIRED)
add_executable(in_c in_c.c)
target_link_libraries(in_c PRIVATE ojs_shm::ojs_shm)
add_executable(in_cxx in_cxx.cpp)
target_link_libraries(in_cxx PRIVATE ojs_shm::ojs_shm)
)";

TEST_F(Package, a_cmake_project_finds_and_uses_it) {
  const std::string source = *scratch_ / "consumer", build = *scratch_ / "consumer/build";
  write(source + "/CMakeLists.txt", kCMakeProject);
  write(source + "/in_c.c", kCProgram);
  write(source + "/in_cxx.cpp", kCxxProgram);
  const Finished configured =
      run({"cmake", "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_PREFIX_PATH=" + prefix(),
           "-DCMAKE_C_FLAGS=" + kSanitizer, "-DCMAKE_CXX_FLAGS=" + kSanitizer});
  ASSERT_EQ(configured.exit_code, 0) << configured.out << configured.err;
  const Finished built = run({"cmake", "--build", build});
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
  EXPECT_EQ(run({build + "/in_c"}).out, "0 ojs_shm\n") << "finds the library by itself";
  expect_version(build + "/in_c");
  expect_version(build + "/in_cxx");
}

TEST_F(Package, a_makefile_finds_it_by_pkg_config) {
  const std::string source = *scratch_ / "in_c.c", program = *scratch_ / "in_c";
  write(source, kCProgram);
  const std::string command = "cc -std=c99 -Wall -Werror " + source + " -o " + program +
                              " $(pkg-config --cflags --libs ojs_shm) " + kSanitizer;
  const std::string found_in = folder_of("ojs_shm.pc");
  const Finished compiled = run_with("PKG_CONFIG_PATH", found_in, {"sh", "-c", command});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.out << compiled.err;
  const Finished alone = run({program});  // finds the library by itself
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_EQ(alone.out, "0 ojs_shm\n");
  const Finished where =
      run_with("PKG_CONFIG_PATH", found_in, {"pkg-config", "--variable=includedir", "ojs_shm"});
  EXPECT_TRUE(fs::equivalent(where.out.substr(0, where.out.find('\n')), prefix() + "/include"))
      << where.out;
}

TEST_F(Package, installed_programs_run_where_they_lie) {
  for (const char* name : {"ojs-shm", "ojs-shm-broker"}) {
    const Finished done = run({prefix() + "/bin/" + name, "--version"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(done.out.find(name), 0U) << done.out;
  }
}

TEST_F(Package, a_release_build_links_its_programs_and_library_without_symbols) {
  const std::string build = *scratch_ / "release";
  const Finished configured =
      run({"cmake", "-S", OJS_SHM_SOURCE_DIR, "-B", build, "-G", "Ninja",
           "-DCMAKE_BUILD_TYPE=Release", "-DOJS_SHM_TESTS=OFF", "-DOJS_SHM_BENCH=OFF"});
  ASSERT_EQ(configured.exit_code, 0) << configured.err;
  const auto link = [&](const std::string& target) {
    const Finished commands = run({"ninja", "-C", build, "-t", "commands", target});
    EXPECT_EQ(commands.exit_code, 0) << commands.err;
    const std::size_t end = commands.out.find_last_not_of('\n');
    const std::size_t begin = commands.out.rfind('\n', end) + 1;
    return commands.out.substr(begin, end - begin);
  };
  for (const char* target : {"bin/ojs-shm", "bin/ojs-shm-broker"})
    EXPECT_NE(link(target).find(" -s "), std::string::npos) << link(target);
  // What that flag does to a program with functions and debug information.
  const std::string source = *scratch_ / "small.c", stripped = *scratch_ / "small";
  write(source, "int answer(void) { return 42; }\nint main(void) { return answer() - 42; }\n");
  ASSERT_EQ(run({"cc", "-g", "-s", source, "-o", stripped}).exit_code, 0);
  EXPECT_EQ(run({"readelf", "-SW", stripped}).out.find(".symtab"), std::string::npos);
}

TEST_F(Package, only_public_headers_are_installed) {
  std::set<std::string> installed, written;
  for (const auto& entry : fs::recursive_directory_iterator(prefix() + "/include")) {
    if (entry.is_regular_file())
      installed.insert(fs::relative(entry.path(), prefix() + "/include").string());
  }
  const std::string public_folder = OJS_SHM_SOURCE_DIR "/worker_api/include";
  for (const auto& entry : fs::recursive_directory_iterator(public_folder)) {
    if (entry.is_regular_file()) written.insert(fs::relative(entry.path(), public_folder).string());
  }
  EXPECT_EQ(installed, written);
  EXPECT_TRUE(installed.contains("ojs_shm/ojs_shm.h"));
}

TEST_F(
    Package,
    structs_may_be_filled_by_some_members_and_the_example_of_the_readme_compiles_without_a_warning) {
  std::ifstream file(OJS_SHM_SOURCE_DIR "/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), {}};
  const std::string opening = "\n```cpp\n";
  const auto begin = readme.find(opening);
  ASSERT_NE(begin, std::string::npos);
  const std::string program =
      readme.substr(begin + opening.size(), readme.find("\n```\n", begin) - begin - opening.size());
  const std::string source = *scratch_ / "readme.cpp";
  write(source, "#include <ojs_shm/admin.hpp>\n" + program + R"(
ojs_shm::JobFilter filter{.type = "a"};
ojs_shm::Failure failure{.message = "no"};
ojs_shm::QueueSettings settings{.paused = true};
ojs_shm::SegmentOptions options{.slots = 64};
ojs_shm::WorkerOptions worker{.lease_ms = 1000};
ojs_shm::Retry retry{.max_attempts = 1};
)");
  const Finished compiled = run({"c++", "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                                 "-fsyntax-only", "-I" + prefix() + "/include", source});
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
}

TEST_F(Package, each_installed_header_compiles_alone) {
  for (const auto& entry : fs::directory_iterator(prefix() + "/include/ojs_shm")) {
    const Finished compiled = run({"c++", "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                                   "-fsyntax-only", "-I" + prefix() + "/include", "-xc++",
                                   "-include", entry.path().string(), "/dev/null"});
    EXPECT_EQ(compiled.exit_code, 0) << entry.path() << compiled.err;
  }
}

}  // namespace
}  // namespace ojs_shm::test
