#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: the engine on a memory as weak as C++ allows, and that each weaker order is noticed [--short | --long] [--from RUN] [--only SCENE]
# NEEDS: build
# WANTS: relacy
# IN-TEST: --short
. "$(dirname "$0")/../lane.sh"
readonly HELP="relacy [--short | --long] [--from RUN] [--only SCENE]
  the long form plays five times as many runs as without a form, in about half an hour of one core
  RUN is the number of the first run with dice: each has a schedule of its own, the same whenever it is played
  SCENE is the name of a test as the reports print it, with * for any text"
only=
while (($#)); do
  case $1 in
    --short | --long) export OJS_SHM_RELACY_FORM=${1#--} ;;
    --from) export OJS_SHM_RELACY_FROM=${2:?$HELP} && shift ;;
    --only) only=${2:?$HELP} && shift ;;
    *) usage "$HELP" ;;
  esac
  shift
done
lane relacy
if ! c++ -E -x c++ - <<<'#include <relacy/relacy.hpp>' >/dev/null 2>&1; then
  not_run "memory orders: there is no <relacy/relacy.hpp> (package relacy-dev)"
elif build_tree default relacy_tests; then
  seconds=1800
  case ${OJS_SHM_RELACY_FORM:-} in
    short) seconds=600 ;;
    long) seconds=7200 ;;
  esac
  run_gtest relacy "$seconds" build/bin/relacy_tests --gtest_filter="*$only*"
fi
finish
