# SPDX-License-Identifier: Apache-2.0
# CMake toolchain: 64-bit ARM from another machine, with the cross compiler and the arm64 libraries of Debian.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
# FindOpenSSL asks pkg-config first, which knows this machine's own libraries.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# Only the library itself is there, not the link by which programs are built (setup.sh).
file(GLOB prometheus /usr/lib/aarch64-linux-gnu/libprometheus-cpp-core.so.*)
if(prometheus)
  list(GET prometheus 0 prometheus)
  set(OJS_SHM_PROMETHEUS_LIBRARY ${prometheus} CACHE FILEPATH "" FORCE)
endif()
