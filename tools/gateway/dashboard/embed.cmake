# SPDX-License-Identifier: Apache-2.0
#
# cmake -DFOLDER=... -DOUTPUT=FILE.cpp -P embed.cmake: the files of a folder as a C++ source that page_files.hpp describes,
# each as it is and as gzip packs it.
find_program(gzip gzip REQUIRED)
file(GLOB files "${FOLDER}/*")
set(arrays "")
set(table "")
set(number 0)
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  # Without the name and the time, so that the same file packs to the same bytes.
  execute_process(COMMAND "${gzip}" -9 -n -c INPUT_FILE "${file}" OUTPUT_FILE "${OUTPUT}.gz" COMMAND_ERROR_IS_FATAL ANY)
  foreach(form IN ITEMS "Plain;${file}" "Gzip;${OUTPUT}.gz")
    list(GET form 0 word)
    list(GET form 1 source)
    file(READ "${source}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND arrays "constexpr unsigned char k${word}${number}[] = {${bytes}};\n")
  endforeach()
  file(REMOVE "${OUTPUT}.gz")
  string(APPEND table "      {\"${name}\", text_of(kPlain${number}), text_of(kGzip${number})},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "// Made from ${FOLDER} by the build.
#include \"tools/gateway/page/page_files.hpp\"

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
