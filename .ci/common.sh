# Functions that the scripts of CI share; to be sourced in the root of the repository.

if [ -d ../shared/data ]; then
  ONLINEFOREST_DATA="$(cd ../shared/data && pwd)"
  export ONLINEFOREST_DATA
fi
export CI=true PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1
export PIP_NO_COMPILE=1 # Python compiles what is imported, which is a small part
# use_ccache: has all builds use ccache, if it is installed.
use_ccache() {
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR="$PWD"
  fi
}
use_ccache

step_names=()
step_starts=()
not_run=()

# step NAME: begins a step and prints its name and the seconds so far.
step() {
  step_names+=("$1")
  step_starts+=("$SECONDS")
  printf '\n== %s (%d s)\n' "$1" "$SECONDS"
}

# skipped WHAT WHY: says that a check did not run; repeated at the end.
skipped() {
  not_run+=("$1: $2")
  printf '\n!!!! NOT RUN: %s: %s\n' "$1" "$2"
}

# optional WHAT COMMAND...: runs a check; exit status 77 means that a tool is missing, which is not a failure.
optional() {
  local what="$1" status=0
  shift
  "$@" || status=$?
  if [ "$status" = 77 ]; then
    skipped "$what" "a tool is missing"
    return 0
  fi
  return "$status"
}

# in_time WHAT COMMAND...: runs a check like `optional`, unless $time_limit seconds have passed already.
in_time() {
  if [ "$SECONDS" -ge "$time_limit" ]; then
    skipped "$1" "$SECONDS s had passed when it was due, the limit is $time_limit s"
    return 0
  fi
  optional "$@"
}

# begin NAME COMMAND...: starts a command in the background. `await NAME` waits for it, prints what it printed, and returns
# its status. Needs the folder $build.
begin() {
  local name="$1"
  shift
  "$@" >"$build/$name.out" 2>&1 &
  printf -v "process_of_$name" '%d' "$!"
}
await() {
  local status=0 process="process_of_$1"
  wait "${!process}" || status=$?
  cat "$build/$1.out"
  return "$status"
}

# finish: prints the seconds of each step, and what did not run; for `trap finish EXIT`.
finish() {
  local i end line
  kill $(jobs -p) 2>/dev/null || true # what was begun, but not awaited: a check failed meanwhile
  printf '\n%8s  %s\n' seconds step
  for i in "${!step_names[@]}"; do
    end="${step_starts[i + 1]:-$SECONDS}"
    printf '%8d  %s\n' "$((end - step_starts[i]))" "${step_names[i]}"
  done
  printf '%8d  total\n' "$SECONDS"
  for line in ${not_run[@]+"${not_run[@]}"}; do printf '!!!! NOT RUN: %s\n' "$line"; done
}

# quietly LOG COMMAND...: runs a command with its output in a file, which is printed if it fails.
quietly() {
  local log="$1"
  shift
  "$@" >"$log" 2>&1 || { cat "$log"; return 1; }
}

# use_environment: puts the active virtual environment, or .venv, first in PATH.
use_environment() {
  local folder="${VIRTUAL_ENV:-$PWD/.venv}"
  if [ ! -x "$folder/bin/python" ]; then
    echo "no virtual environment: python3 -m venv .venv && .venv/bin/pip install '.[dev]'" >&2
    return 1
  fi
  export PATH="$folder/bin:$PATH"
}

# build_sanitized BUILD_FOLDER SANITIZERS [OPTION...]: builds the extension with sanitizers.
build_sanitized() {
  local folder="$1" sanitizers="$2"
  shift 2
  cmake -S . -B "$folder" -G Ninja -DCMAKE_UNITY_BUILD=ON -DONLINEFOREST_SANITIZE="$sanitizers" \
    -DPython_EXECUTABLE="$(command -v python)" "$@" &&
    cmake --build "$folder"
}

# make_site BUILD_FOLDER: puts the package, with the extension that was built there, into BUILD_FOLDER/site.
# The package needs its metadata for the version only, so nothing need be installed.
make_site() {
  rm -rf "$1/site"
  mkdir -p "$1/site/onlineforest-0.dist-info"
  cp -R src/onlineforest "$1/site/onlineforest"
  rm -f "$1"/site/onlineforest/_core*.so
  cp "$1"/_core*.so "$1/site/onlineforest/"
  printf 'Metadata-Version: 2.1\nName: onlineforest\nVersion: 0\n' >"$1/site/onlineforest-0.dist-info/METADATA"
}

# check_site BUILD_FOLDER: fails if Python would import another package, such as an editable install.
check_site() {
  python - "$1" <<'PYTHON'
import sys

import onlineforest._core as core

if not core.__file__.startswith(sys.argv[1]):
    sys.exit(f"the tests would import {core.__file__}, not the package in {sys.argv[1]}")
PYTHON
}

# lint: everything that looks at sources only.
lint() {
  ruff format --check . &&
    ruff check . &&
    find src tests -name '*.[ch]pp' -print0 | xargs -0 clang-format --dry-run --Werror &&
    python .ci/check_rooms.py &&
    python .ci/check_words.py &&
    python .ci/check_sizes.py &&
    mypy &&
    PYTHONPATH=src lint-imports &&
    python tests/mutation/run.py --check &&
    zizmor --offline --quiet .github &&
    repo-review .
}

# has_header HEADER: whether the C++ compiler finds a header.
has_header() { echo "#include <$1>" | "${CXX:-c++}" -E -x c++ - >/dev/null 2>&1; }

# install_packages PACKAGE...: installs system packages, if this is root on a system with apt-get; fails otherwise.
install_packages() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@"; } >/dev/null 2>&1
}
