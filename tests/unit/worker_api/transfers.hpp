// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <ojs_shm/transfer.hpp>

namespace ojs_shm::test {

using Lines = std::vector<std::string>;

inline Lines exported(const Segment& segment) {
  Lines lines;
  const Status done = export_segment(segment, [&](std::string_view line) -> Status {
    lines.emplace_back(line);
    return {};
  });
  EXPECT_TRUE(done.ok());
  return lines;
}

/// The first error, or what was done.
inline Status import(const Segment& segment, const Lines& lines, ImportReport* report = nullptr) {
  Import import = Import::attach(segment).value();
  for (const std::string& line : lines)
    if (Status taken = import.take(line); !taken) return taken;
  if (Status done = import.finish(); !done) return done;
  if (report != nullptr) *report = import.report();
  return {};
}

}  // namespace ojs_shm::test
