# SPDX-License-Identifier: Apache-2.0
#
# cmake -DFOLDER=... -DOUTPUT=FILE.cpp -P embed.cmake: the files of a folder as a C++ source that page_files.hpp describes.
file(GLOB files "${FOLDER}/*")
set(arrays "")
set(table "")
set(number 0)
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "constexpr unsigned char kFile${number}[] = {${bytes}};\n")
  string(APPEND table "      {\"${name}\", text_of(kFile${number})},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "// Made from ${FOLDER} by the build.
#include \"tools/gateway/page_files.hpp\"

namespace ojs_shm::gateway {
namespace {
${arrays}
template <unsigned long kSize>
std::string_view text_of(const unsigned char (&bytes)[kSize]) {
  return {reinterpret_cast<const char*>(bytes), kSize};
}
}  // namespace
std::span<const PageFile> page_files() {
  static const PageFile kFiles[] = {
${table}  };
  return kFiles;
}
}  // namespace ojs_shm::gateway
")
