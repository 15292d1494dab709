#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup.sh GROUP...: installs the Debian or Ubuntu packages that a lane misses, and says nothing when none is missing.
# An entry PACKAGE@COMMAND also counts as present when the command is there, wherever it came from.
set -euo pipefail
NATIVE=$(dpkg --print-architecture 2>/dev/null || true)

packages_of() {
  case $1 in
    build)
      echo python3@python3 g++@g++ cmake@cmake ninja-build@ninja pkg-config@pkg-config "$(boost_package)"
      echo libfmt-dev libspdlog-dev libssl-dev libutf8proc-dev libhowardhinnant-date-dev libconcurrentqueue-dev libcli11-dev libtomlplusplus-dev prometheus-cpp-dev
      echo libgtest-dev libgmock-dev libbenchmark-dev systemtap-sdt-dev libncurses-dev curl@curl
      ;;
    python) echo python3@python3 ;;
    test) echo python3-pyte python3-jsonschema python3-croniter nodejs@node npm@npm rustc jq@jq openssl@openssl python3-venv python3-setuptools python3-wheel prometheus@promtool python3-prometheus-client bpftrace@bpftrace ;;
    browser) echo chromium@chromium nodejs@node npm@npm ;;
    model) echo python3@python3 spin@spin gcc@gcc ;;
    relacy) echo relacy-dev ;;
    lld) echo lld@ld.lld ;;
    format) echo clang-format-14@clang-format-14 ;;
    clang-tidy) echo clang-tidy@clang-tidy ;;
    fuzz) echo clang@clang++ "$(clang_runtime)" ;;
    aarch64)
      echo g++-aarch64-linux-gnu@aarch64-linux-gnu-g++ qemu-user@qemu-aarch64
      echo libfmt-dev:arm64 libspdlog-dev:arm64 libssl-dev:arm64 libutf8proc-dev:arm64 libhowardhinnant-date-dev:arm64 libtomlplusplus-dev:arm64 "$(prometheus_library):arm64" libgtest-dev:arm64 libgmock-dev:arm64 libncurses-dev:arm64
      ;;
    cost) echo valgrind@valgrind ;;
    bench) echo libtbb-dev libzmq3-dev libhiredis-dev redis-server@redis-server beanstalkd@beanstalkd ;;
    *)
      echo "setup: no package group '$1'" >&2
      return 1
      ;;
  esac
}

# Debian 12 has Boost 1.81 beside its default 1.74; later releases have a newer default.
boost_package() {
  local installed name
  installed=$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' 'libboost1.*-dev' 2>/dev/null |
    sed -nE 's/^ii +(libboost1\.(8[1-9]|9[0-9])-dev)$/\1/p' | head -n 1)
  if [[ -n $installed ]]; then
    echo "$installed"
    return
  fi
  for name in libboost1.81-dev libboost1.83-dev; do
    if apt-cache show "$name" >/dev/null 2>&1; then
      echo "$name"
      return
    fi
  done
  echo libboost1.81-dev
}

# Alone, for prometheus-cpp-dev is there for one architecture at a time: that of the machine.
prometheus_library() {
  local name
  name=$(apt-cache depends prometheus-cpp-dev 2>/dev/null |
    sed -nE 's/.*Depends: (libprometheus-cpp-core[0-9.]+)$/\1/p' | head -n 1 || true)
  echo "${name:-libprometheus-cpp-core1.0}"
}

# libFuzzer and the sanitizers of the clang that is there, or would be.
clang_runtime() {
  local version
  version=$(clang++ -dumpversion 2>/dev/null ||
    apt-cache depends clang 2>/dev/null | sed -nE 's/.*Depends: clang-([0-9]+)$/\1/p' || true)
  version=${version%%.*}
  echo "libclang-rt-${version:-14}-dev"
}

present() { # PACKAGE[@COMMAND]; of the machine's own architecture unless the name says another
  if [[ $1 == *@* ]] && command -v "${1#*@}" >/dev/null 2>&1; then
    return 0
  fi
  local package=${1%@*} architecture
  [[ $package == *:* ]] && architecture=${package#*:} || architecture=$NATIVE
  dpkg-query -W -f='${db:Status-Abbrev}${Architecture}\n' "$package" 2>/dev/null | grep -qxE "ii +(all|$architecture)"
}

missing() { # GROUP...
  local group entry entries
  for group in "$@"; do
    entries=$(packages_of "$group")
    for entry in $entries; do
      present "$entry" || echo "${entry%@*}"
    done
  done
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo ${CI:+-n} "$@"
  else
    echo "setup: not root and no sudo" >&2
    return 1
  fi
}

for group in "$@"; do packages_of "$group" >/dev/null || exit 2; done
(($#)) || exit 0
command -v dpkg-query >/dev/null || exit 0 # another distribution: CMake will name what it does not find
[[ -n $(missing "$@") ]] || exit 0

# Packages of another architecture: Debian's mirrors have them all, Ubuntu's have not.
for architecture in $(missing "$@" | sed -n 's/^.*://p' | sort -u); do
  if [[ " $NATIVE $(dpkg --print-foreign-architectures | xargs) " != *" $architecture "* ]]; then
    if ! grep -q '^ID=debian' /etc/os-release; then
      echo "setup: no packages for $architecture: this is not Debian, and dpkg does not know that architecture" >&2
      exit 2
    fi
    as_root dpkg --add-architecture "$architecture"
  fi
done

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "setup: refreshing the package lists"
as_root apt-get update -qq >"$log" 2>&1 || sed 's/^/  /' "$log" >&2
list=$(missing "$@" | sort -u) # asked again: which Boost there is can be told only now
echo "setup: installing" $list
if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $list >"$log" 2>&1; then
  sed 's/^/  /' "$log" >&2
  echo "setup: could not install the packages named above" >&2
  exit 2
fi
