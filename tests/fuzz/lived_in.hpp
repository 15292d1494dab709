// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ojs_shm/segment.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace ojs_shm::fuzz {

/// A segment's file in the middle of its life, the ids of its jobs, and where its tables begin.
struct Image {
  std::string bytes;
  std::vector<std::string> ids;
  std::vector<std::size_t> tables;  ///< rising, from 0; the last one is the end
};

/// Where the files of this process lie.
const SegmentName& segment_name();

/// Segments with jobs in every state. In the first everybody has left; in each of the others the
/// inhabitant was killed in the middle of another operation. All have the same geometry.
const std::vector<Image>& images();

void write_file(const std::string& path, std::string_view bytes);

}  // namespace ojs_shm::fuzz
