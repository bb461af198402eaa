#!/usr/bin/env bash
# Builds the project in examples/builds with each build system and the tool: from nothing; a second time, which must do
# nothing; after a change of the graph, which must rebuild what it reaches and nothing else; and runs it.
#   scripts/test_builds.sh TOOL [cmake|make|meson|bazel|cargo]...
# Logs lie in target/builds. A build system that is not installed is skipped with a line, or fails if CI=true.
set -eu

cd "$(dirname "$0")/.."
root=$PWD
tool=$1
shift
[ $# -gt 0 ] || set -- cmake make meson bazel cargo
logs=$root/target/builds
work=$(mktemp -d)
servers=()
stop_servers() {
  local one
  for one in $(printf '%s\n' "${servers[@]}" | sort -u); do
    bazel --nohome_rc --output_user_root="$one" shutdown >/dev/null 2>&1 || true
  done
}

trap 'stop_servers; chmod -R u+w "$work"; rm -rf "$work"' EXIT
mkdir -p "$logs"
scripts/package.sh "$tool" "$work/prefix"
prefix=$work/prefix
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
unset XLA_FLAGS TF_XLA_FLAGS MAKEFLAGS MAKELEVEL MFLAGS

system=
log() { # log NAME COMMAND...: runs a command, its output in a file
  local file=$logs/$system-$1.log
  shift
  if ! "$@" >"$file" 2>&1; then
    cat "$file" >&2
    fail "'$*' failed"
  fi
}
fail() {
  echo "test_builds: $system: $*" >&2
  exit 1
}
said() { grep -qE -- "$2" "$logs/$system-$1.log"; } # said NAME PATTERN
wants() { said "$1" "$2" || fail "$1: '$2' is not in $logs/$system-$1.log"; }
refuses() { ! said "$1" "$2" || fail "$1: '$2' is in $logs/$system-$1.log"; }
have() { # have COMMAND...
  local command
  for command; do
    command -v "$command" >/dev/null && continue
    [ "${CI:-}" != true ] || fail "$command is needed"
    echo "skipped: $system (no $command)"
    return 1
  done
}
project() { # a fresh copy of the example, and enters it
  rm -rf "$work/project"
  cp -r "$root/examples/builds" "$work/project"
  cd "$work/project"
}
# One weight of the bias: the header stays, the second result is negative, so zero.
train_again() { sed -i 's/float_val: -2 /float_val: -30 /' layer.pbtxt; }
prints() { # prints WHEN COMMAND...: what the program prints for ones: column sums and bias
  local when=$1 expected
  shift
  case $when in
    first) expected=$'23 24 33\n1 0 3' ;;
    trained) expected=$'23 0 33\n1 0 3' ;;
  esac
  [ "$("$@")" = "$expected" ] || fail "$when: it prints '$("$@")', not '$expected'"
}

initialised() { # initialised SYSTEM MODEL...: a project that `tfcompile init` writes, and enters it
  local build=$1
  shift
  rm -rf "$work/init"
  log init "$prefix/bin/tfcompile" init "$work/init" --build "$build" --model "$@"
  cd "$work/init"
}

cmake_with() { # cmake_with GENERATOR NOTHING-TO-DO RAN COMPILED
  system=cmake-$1
  project
  log configure cmake -B build -G "$2" -Dtfcompile_DIR="$prefix/lib/cmake/tfcompile" -DCMAKE_BUILD_TYPE=Release
  log clean cmake --build build
  wants clean "Compiling layer with tfcompile"
  log test ctest --test-dir build --output-on-failure
  wants test "layer_test .*Passed"
  prints first build/app
  log benchmark build/layer_benchmark --max_iters=10
  log again cmake --build build
  refuses again "Compiling|Building|Linking"
  train_again
  log changed cmake --build build
  wants changed "Compiling layer with tfcompile"
  wants changed "Linking CXX executable app"
  prints trained build/app
  log settled cmake --build build
  refuses settled "Compiling|Building|Linking"
}

test_cmake() {
  system=cmake
  have cmake ninja make || return 0
  cmake_with make "Unix Makefiles"
  cmake_with ninja Ninja
  # Ninja looks at what came out of a command: the header did not change, so its users stay.
  refuses changed "Building CXX object.*main"
  touch layer.config.pbtxt
  log config cmake --build build
  wants config "Compiling layer with tfcompile"

  system=cmake-everything
  log configure cmake -S "$root/tests/builds/cmake" -B "$work/everything" -G Ninja -DMODELS="$root/tests" \
    -Dtfcompile_DIR="$prefix/lib/cmake/tfcompile" -DCMAKE_INSTALL_PREFIX="$work/installed"
  log build cmake --build "$work/everything"
  log test ctest --test-dir "$work/everything" --output-on-failure
  wants test "100% tests passed, 0 tests failed out of 3"
  log install cmake --install "$work/everything"
  log user cmake -S "$root/tests/builds/cmake/user" -B "$work/user" -G Ninja \
    -Deverything_DIR="$work/installed/lib/cmake/everything" -Dtfcompile_DIR="$prefix/lib/cmake/tfcompile"
  log user-build cmake --build "$work/user"
  "$work/user/user" || fail "the program that uses the installed library fails"

  system=cmake-init
  initialised cmake "$root/tests/saved_models/keras3" --batch 1
  log configure cmake -B build -G Ninja
  log build cmake --build build
  log test ctest --test-dir build --output-on-failure
  wants test "keras3_test .*Passed"
  log run build/app
  wants run "result 0: "

  system=cmake-cross
  have aarch64-linux-gnu-g++ qemu-aarch64 || return 0
  project
  printf '%s\n' 'set(CMAKE_SYSTEM_NAME Linux)' 'set(CMAKE_SYSTEM_PROCESSOR aarch64)' \
    'set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)' 'set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)' \
    'set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)' 'set(CMAKE_EXE_LINKER_FLAGS_INIT -static)' >toolchain.cmake
  log configure cmake -B build -G Ninja --toolchain toolchain.cmake -Dtfcompile_DIR="$prefix/lib/cmake/tfcompile"
  log build cmake --build build
  log test ctest --test-dir build --output-on-failure
  wants test "layer_test .*Passed"
  prints first qemu-aarch64 build/app
}

test_make() {
  system=make
  have make pkg-config || return 0
  project
  log clean make
  wants clean "tfcompile build"
  log check make check
  prints first ./app
  log benchmark ./layer_benchmark --max_iters=10
  log again make
  wants again "Nothing to be done"
  train_again
  log changed make
  wants changed "tfcompile build"
  refuses changed "main.cc"
  prints trained ./app
  log settled make
  wants settled "Nothing to be done"

  system=make-init
  initialised make "$root/tests/artefacts/layer.pbtxt" --shape x=2,4
  log build make
  log run ./app
  wants run "result 0: 24 bytes"

  system=make-cross
  have aarch64-linux-gnu-g++ qemu-aarch64 || return 0
  project
  log clean make CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ TARGET=aarch64-linux LDFLAGS=-static
  prints first qemu-aarch64 ./app
  log benchmark qemu-aarch64 ./layer_benchmark --max_iters=3
}

test_meson() {
  system=meson
  have meson ninja pkg-config || return 0
  project
  log configure meson setup build
  log clean ninja -C build
  wants clean "layer"
  log test meson test -C build
  prints first build/app
  log again ninja -C build
  wants again "no work to do"
  train_again
  log changed ninja -v -C build
  wants changed "tfcompile build"
  refuses changed "-c ../main.cc"
  prints trained build/app
  log settled ninja -C build
  wants settled "no work to do"
}

bazel_at() { # bazel_at ROOT COMMAND ARGUMENTS...: Bazel with its outputs below a directory of the test's, without network
  local output_root=$work/$1 command=$2 shim shims=()
  shift 2
  # What Bazel 4 would download before it does anything, as far as C++ needs it.
  for shim in rules_cc rules_java remote_coverage_tools; do
    shims+=(--override_repository="$shim=$root/tests/builds/bazel/$shim")
  done
  servers+=("$output_root")
  bazel --nohome_rc --output_user_root="$output_root" --max_idle_secs=30 "$command" "${shims[@]}" \
    --override_repository=tfcompile="$prefix" --disk_cache="$work/disk_cache" --color=no --curses=no --nosandbox_debug "$@"
}
test_bazel() {
  system=bazel
  have bazel || return 0
  project
  log clean bazel_at one build :app :layer_benchmark :layer_session_module.pb
  wants clean "linux-sandbox|processwrapper|local"
  prints first bazel-bin/app
  log test bazel_at one test :layer_test
  wants test "PASSED"
  log benchmark bazel-bin/layer_benchmark --max_iters=10
  log again bazel_at one build :app :layer_benchmark :layer_session_module.pb
  wants again "INFO: 1 process: 1 internal"
  train_again
  log changed bazel_at one build -s :app
  wants changed "SUBCOMMAND.*gen_layer"
  wants changed "SUBCOMMAND.*:app.*Linking|Linking app"
  refuses changed "Compiling main.cc"
  prints trained bazel-bin/app

  system=bazel-init
  initialised bazel "$root/tests/saved_models/keras3" --batch 1
  log run bazel_at one run :app
  wants run "result 0: "

  # Another clone elsewhere, with another server: every action is in the cache.
  system=bazel-cache
  project
  mv "$work/project" "$work/clone"
  cd "$work/clone"
  log clean bazel_at two build :app :layer_benchmark :layer_session_module.pb
  wants clean "(disk|remote) cache hit"
  refuses clean "linux-sandbox|processwrapper-sandbox|[0-9] local"
  prints first bazel-bin/app
  stop_servers

  system=bazel-tensorflow
  [ -d /usr/include/eigen3/Eigen ] || { echo "skipped: $system (no Eigen)"; return 0; }
  local graphs=$root/tests/oracle/tfcompile_tests models=$work/tensorflow/my/models graph name
  cp -r "$root/tests/builds/bazel/tensorflow_project" "$work/tensorflow"
  for graph in tfmatmul tfmatmulandadd tfadd_with_ckpt:tfadd_with_ckpt_saver; do
    name=test_graph_${graph#*:}
    cp "$graphs/${graph%:*}/graph.pb" "$models/$name.pb"
    cp "$graphs/${graph%:*}/config.pbtxt" "$models/$name.config.pbtxt"
  done
  cp "$graphs/tfadd_with_ckpt/graph.ckpt" "$models/test_graph_tfadd_with_ckpt_saver.ckpt"
  cp "$graphs/tfadd_with_ckpt/graph.saver" "$models/test_graph_tfadd_with_ckpt_saver.saver"
  sed -i 's|"//tensorflow/compiler/aot:tfcompile.bzl"|"@tfcompile//:tfcompile.bzl"|' "$models/BUILD"
  cd "$work/tensorflow"
  log test bazel_at three test //my/models:all
  wants test "//my/models:matmul_test .*PASSED"
  wants test "Executed 4 out of 4 tests: 4 tests pass"
  stop_servers
}

test_cargo() {
  system=cargo-init
  initialised cargo "$root/tests/artefacts/layer.pbtxt" --shape x=2,4
  log run env -u CARGO_TARGET_DIR TFCOMPILE="$prefix/bin/tfcompile" cargo run --offline
  wants run "the model ran"
}

for one; do
  "test_$one"
  cd "$root"
  echo "test_builds: $one: passed"
done
