#!/usr/bin/env bash
# Builds the project in examples/builds (with Cargo: examples/cargo) with each build system and the
# tool: from scratch, as in a clone; a second time, which must do nothing; and after a change of the
# graph, which must rebuild only the affected parts. Runs the program and prints a table of the
# steps.
#   scripts/test_builds.sh TOOL [cmake|make|meson|bazel|cargo|pip]...
# Logs are in target/builds. A build system that is not installed is skipped with a line, or fails
# if CI=true.
set -eu

cd "$(dirname "$0")/.."
tree=$PWD
tool=$1
shift
[ $# -gt 0 ] || set -- cmake make meson bazel cargo pip
logs=$tree/target/builds
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
# The files of a clone: no ignored files, no build products.
root=$work/clone
mkdir "$root"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [ ! -e "$file" ] || printf '%s\0' "$file"
done | tar -c --null --files-from=- | tar -x -C "$root"
scripts/package.sh "$tool" "$work/prefix"
prefix=$work/prefix
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
unset XLA_FLAGS TF_XLA_FLAGS MAKEFLAGS MAKELEVEL MFLAGS

# ---- what all of them share

system=
fail() {
  echo "test_builds: $system: $*" >&2
  exit 1
}
# log NAME COMMAND...: runs a command and redirects its output to a file. Sets $took to its duration
# in tenths of a second.
log() {
  local file=$logs/$system-$1.log began
  shift
  began=$(date +%s%N)
  if ! "$@" >"$file" 2>&1; then
    cat "$file" >&2
    fail "'$*' failed"
  fi
  took=$((($(date +%s%N) - began) / 100000000))
}
refused() { # refused NAME WHY COMMAND...: runs a command that has to fail, saying why
  local name=$1 why=$2
  shift 2
  ! "$@" >"$logs/$system-$name.log" 2>&1 || fail "'$*' does not fail"
  wants "$name" "$why"
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

steps() { # steps NAME: steps of a build: `model`, or the compiled and linked files, one per line
  local file=$logs/$system-$1.log
  case $system in
    cmake*)
      sed -nE 's/^\[.*\] Compiling .* with tfcompile$/model/p; s/^\[.*\] Building .*\/([^/]+)\.o$/\1/p
        s/^\[.*\] Linking .* ([^ ]+)$/\1/p' "$file" ;;
    make* | meson*)
      sed -nE '/tfcompile build /{s/.*/model/p;d}; s/.* -c (.*\/)?([^/ ]+)( .*)?$/\2/p;t; s/.* -o ([^ ]+)( .*)?$/\1/p' "$file" ;;
    bazel*)
      sed -nE "/^SUBCOMMAND/{s/.*'Compiling [^ ]+ with tfcompile .*/model/p;t; s/.*'Executing genrule .*_session_module'.*/session_module.pb/p;t
        s/.*'[A-Z][a-z]* ([^' ]*\/)?([^'/ ]+)'.*/\2/p;t; p}" "$file" ;;
    cargo*)
      sed -nE 's/^ *Running `.*build-script-build`$/model/p; s/^ *Running `.*--crate-name ([^ ]+) .*/\1/p' "$file" ;;
    pip*) sed -nE 's/^ *Compiling ([^ ]+) .*/\1/p' "$file" ;;
  esac | sort -u
}
did() { # did NAME STEP...: the build did these steps and no others
  local name=$1 wanted got
  shift
  wanted=$([ $# = 0 ] || printf '%s\n' "$@" | sort -u)
  got=$(steps "$name")
  [ "$got" = "$wanted" ] || fail "$name: expected the steps '$(echo $wanted)', got '$(echo $got)', see $logs/$system-$name.log"
}
prints() { # prints WHEN COMMAND...: what the program prints for ones: column sums and bias
  local when=$1 expected
  shift
  case $when in
    first) expected=$'23 24 33\n1 0 3' ;;
    trained) expected=$'23 0 33\n1 0 3' ;;
  esac
  printed=$("$@")
  [ "$printed" = "$expected" ] || fail "$when: it prints '$printed', not '$expected'"
}
# One weight of the bias changes: the header stays the same, and the second result is negative, so
# zero.
train_again() { sed -i 's/float_val: -2 /float_val: -30 /' layer.pbtxt; }

table=$logs/table.txt
line() { printf '%-17s | %-51s | %-8s | %s\n' "$@"; }
{
  line 'build system' 'from nothing' 'again' 'after a change of the graph'
  printf '%s\n' '------------------|-----------------------------------------------------|----------|---'
} >"$table"
in_words() { [ $# = 0 ] && echo nothing || echo "$@"; }
# row TENTHS FIRST: adds a row to the table. TENTHS is the duration of the first build, FIRST the
# program's output after it, and $printed the output after the change. Requires the logs `clean`,
# `again`, and `changed`.
row() {
  local seconds="$(($1 / 10)).$(($1 % 10)) s" first=$2
  line "$system" "$seconds, prints ${first//$'\n'/ / }" "$(in_words $(steps again))" \
    "$(in_words $(steps changed)); prints ${printed//$'\n'/ / }" >>"$table"
}

project() { # creates the example as in a clone, and enters it
  rm -rf "$work/project"
  cp -r "$root/examples/builds" "$work/project"
  cd "$work/project"
}
initialized() { # initialized SYSTEM MODEL...: a project that `tfcompile init` writes, and enters it
  local build=$1
  shift
  rm -rf "$work/init"
  log init "$prefix/bin/tfcompile" init "$work/init" --build "$build" --model "$@"
  cd "$work/init"
}

# ---- CMake

cmake_with() { # cmake_with NAME GENERATOR
  local clean first
  system=cmake-$1
  project
  log configure cmake -B build -G "$2" -Dtfcompile_DIR="$prefix/lib/cmake/tfcompile" -DCMAKE_BUILD_TYPE=Release
  log clean cmake --build build
  clean=$took
  did clean model liblayer.a main.cc app layer_test.c layer_test layer_benchmark.c layer_benchmark
  log test ctest --test-dir build --output-on-failure
  wants test "layer_test .*Passed"
  prints first build/app
  first=$printed
  log benchmark build/layer_benchmark --max_iters=10
  log again cmake --build build
  did again
  train_again
  log changed cmake --build build
  # The header and the programs' sources are unchanged, so only the model is compiled.
  did changed model liblayer.a app layer_test layer_benchmark
  prints trained build/app
  row "$clean" "$first"
  log settled cmake --build build
  did settled
  touch layer.config.pbtxt
  log config cmake --build build
  wants config "Compiling layer with tfcompile"
}

test_cmake() {
  system=cmake
  have cmake ninja make || return 0
  cmake_with make "Unix Makefiles"
  cmake_with ninja Ninja

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
  initialized cmake "$root/tests/saved_models/keras3" --batch 1
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

# ---- Make

test_make() {
  local clean first
  system="make"
  have make pkg-config || return 0
  project
  log clean make
  clean=$took
  did clean model main.cc app layer_test layer_benchmark
  log check make check
  prints first ./app
  first=$printed
  log benchmark ./layer_benchmark --max_iters=10
  log again make
  did again
  wants again "Nothing to be done"
  train_again
  log changed make
  did changed model app layer_test layer_benchmark
  prints trained ./app
  row "$clean" "$first"
  log settled make
  wants settled "Nothing to be done"

  system=make-init
  initialized make "$root/tests/artifacts/layer.pbtxt" --shape x=2,4
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

# ---- Meson

test_meson() {
  local clean first
  system=meson
  have meson ninja pkg-config || return 0
  project
  log configure meson setup build
  log clean ninja -v -C build
  clean=$took
  did clean model main.cc app layer_test.c layer_test layer_benchmark.c layer_benchmark
  log test meson test -C build
  prints first build/app
  first=$printed
  log again ninja -v -C build
  did again
  wants again "no work to do"
  train_again
  log changed ninja -v -C build
  did changed model app layer_test layer_benchmark
  prints trained build/app
  row "$clean" "$first"
  log settled ninja -C build
  wants settled "no work to do"
}

# ---- Bazel

# bazel_at ROOT COMMAND ARGUMENTS...: runs Bazel without network access, with its outputs below a
# directory of the test.
bazel_at() {
  local output_root=$work/$1 command=$2 shim shims=()
  shift 2
  # The files that Bazel 4 would download first, as far as C++ needs them.
  for shim in rules_cc rules_java remote_coverage_tools; do
    shims+=(--override_repository="$shim=$root/tests/builds/bazel/$shim")
  done
  servers+=("$output_root")
  [ "$command" = query ] || set -- --disk_cache="$work/disk_cache" --nosandbox_debug "$@"
  bazel --nohome_rc --output_user_root="$output_root" --max_idle_secs=30 "$command" "${shims[@]}" \
    --override_repository=tfcompile="$prefix" --color=no --curses=no "$@"
}
test_bazel() {
  local clean first targets=":app :layer_benchmark :layer_session_module.pb"
  system=bazel
  have bazel || return 0
  project
  log clean bazel_at one build -s $targets
  clean=$took
  did clean model session_module.pb main.cc app layer_benchmark.cc layer_benchmark
  refuses clean "cache hit"
  prints first bazel-bin/app
  first=$printed
  log test bazel_at one test :layer_test
  wants test "PASSED"
  log benchmark bazel-bin/layer_benchmark --max_iters=10
  log again bazel_at one build -s $targets
  did again
  wants again "INFO: 1 process: 1 internal"
  train_again
  log changed bazel_at one build -s $targets
  did changed model session_module.pb app layer_benchmark
  prints trained bazel-bin/app
  row "$clean" "$first"

  system=bazel-init
  initialized bazel "$root/tests/saved_models/keras3" --batch 1
  log run bazel_at one run :app
  wants run "result 0: "
  stop_servers

  # Another clone in another directory, with another server and shell: every action must be in the
  # cache.
  system=bazel-cache
  project
  mv "$work/project" "$work/elsewhere"
  cd "$work/elsewhere"
  PATH=$PATH:$work log clean bazel_at two build $targets
  wants clean "(disk|remote) cache hit"
  refuses clean "linux-sandbox|processwrapper-sandbox|[0-9] local"
  prints first bazel-bin/app
  line "$system" "$((took / 10)).$((took % 10)) s, prints ${printed//$'\n'/ / }" "" \
    "$(sed -nE 's/^INFO: [0-9]+ processes: (.*)\.$/\1/p' "$logs/$system-clean.log") in another clone with that disk cache" >>"$table"
  stop_servers

  test_bazel_parameters
  test_bazel_tensorflow
}

test_bazel_parameters() { # each parameter of tf_library, and other machines
  local at=$work/parameters graphs=$root/tests/oracle/tfcompile_tests/tfadd_with_ckpt file message arguments
  system=bazel-parameters
  cp -r "$root/tests/builds/bazel/parameters" "$at"
  for file in graph.pb config.pbtxt graph.ckpt graph.saver; do
    cp "$graphs/$file" "$at/one_file.$file"
  done
  cp "$root/crates/tf/tests/data/freeze/reference_text/"{graph.pbtxt,model.*} "$at"
  cp -r "$root/tests/saved_models/keras3" "$root/tests/artifacts/layer.pbtxt" "$root/tests/artifacts/layer.config.pbtxt" "$at"
  cd "$at"

  # Values, checked by values_test.cc and the tests that the macro generates.
  log test bazel_at three test -s //:all
  wants test "//:values_test .*PASSED"
  wants test "Executed 4 out of 4 tests: 4 tests pass"
  wants test "several_files: enable_tracemes and mlir_components have no effect"
  wants test "-DWANTED_BY_COPTS.*several_files_benchmark"
  grep -q "^HloModule" bazel-bin/several_files_compiler.log || fail "gen_compiler_log: there is no HLO in it"
  [ -s bazel-bin/several_files_session_module.pb ] || fail "there is no session module"

  # Attributes of the targets: name, tags, testonly, gen_test, gen_benchmark, visibility.
  log targets bazel_at three query 'kind("cc_", attr(testonly, 1, attr(tags, marked, //:all))) union kind("cc_", filter("(one|several)_file", //:all))'
  [ "$(grep '^//' "$logs/$system-targets.log" | sort | xargs)" = "//:one_file //:one_file_test //:several_files //:several_files_benchmark" ] ||
    fail "these are the targets: $(grep '^//' "$logs/$system-targets.log" | xargs)"
  log marked bazel_at three query 'attr(tags, marked, //:all) except attr(testonly, 1, //:all)'
  refuses marked "^//"
  refused visibility "'//:saved' is not visible|visible from target '//hidden:hidden'" bazel_at three build //hidden

  # Errors are reported when the BUILD file is loaded.
  mkdir broken
  while IFS='|' read -r message arguments; do
    printf 'load("@tfcompile//:tfcompile.bzl", "tf_library")\ntf_library(name = "x", %s)\n' "$arguments" >broken/BUILD
    refused broken "$message" bazel_at three query //broken:x
  done <<'CASES'
cpp_class must be specified|graph = "x.pb"
freeze_checkpoint must be specified when freeze_saver is specified|graph = "x.pb", cpp_class = "X", freeze_saver = "x.saver"
set exactly one of graph|graph = "x.pb", cpp_class = "X", saved_model = ":m"
set exactly one of graph|cpp_class = "X"
freeze_checkpoint requires a config|graph = "x.pb", cpp_class = "X", freeze_checkpoint = "x.ckpt"
CASES
  rm -r broken
  # The tool's messages are passed through.
  sed -i 's/"--xla_hlo_profile"/"--xla_hlo_profile=maybe"/' BUILD
  refused xla-flags "INVALID ARGUMENTS: --xla_hlo_profile=maybe: expected true or false" bazel_at three build //:several_files
  line "$system" "4 of 4 tests pass" "" "each parameter of tf_library" >>"$table"

  system=bazel-cross
  have aarch64-linux-gnu-g++ qemu-aarch64 || return 0
  log build bazel_at three build --platforms=//machines:aarch64_linux //:layer_test //:layer_benchmark
  [ "$(machine bazel-bin/layer_tfcompile_function.o)" = AArch64 ] || fail "the object is for $(machine bazel-bin/layer_tfcompile_function.o)"
  log test qemu-aarch64 bazel-bin/layer_test
  log benchmark qemu-aarch64 bazel-bin/layer_benchmark --max_iters=3
  log other bazel_at three build --platforms=//machines:riscv64_linux //:gen_layer
  [ "$(machine bazel-bin/layer_tfcompile_function.o)" = RISC-V ] || fail "the object is for $(machine bazel-bin/layer_tfcompile_function.o)"
  refused unknown "tf_library does not support this platform" bazel_at three build --platforms=//machines:mips64_linux //:gen_layer
  sed -i '/cpp_class = "example::Layer"/a tfcompile_flags = "--target_triple=riscv64-linux-gnu",' BUILD
  log named bazel_at three build --platforms=//machines:mips64_linux //:gen_layer
  [ "$(machine bazel-bin/layer_tfcompile_function.o)" = RISC-V ] || fail "a triple in tfcompile_flags is not taken"
  line "$system" "--platforms: aarch64, run in an emulator; riscv64" "" "a platform without triple is refused" >>"$table"
  stop_servers
}
machine() { readelf -h "$1" | sed -n 's/^ *Machine: *//p'; } # what an object is for

test_bazel_tensorflow() { # a project written for TensorFlow's macro, one line changed
  system=bazel-tensorflow
  [ -d /usr/include/eigen3/Eigen ] || { echo "skipped: $system (no Eigen)"; return 0; }
  local graphs=$root/tests/oracle/tfcompile_tests models=$work/tensorflow/my/models graph name written
  written=$root/tests/builds/bazel/tensorflow_project
  cp -r "$written" "$work/tensorflow"
  for graph in tfmatmul tfmatmulandadd tfadd_with_ckpt:tfadd_with_ckpt_saver; do
    name=test_graph_${graph#*:}
    cp "$graphs/${graph%:*}/graph.pb" "$models/$name.pb"
    cp "$graphs/${graph%:*}/config.pbtxt" "$models/$name.config.pbtxt"
  done
  cp "$graphs/tfadd_with_ckpt/graph.ckpt" "$models/test_graph_tfadd_with_ckpt_saver.ckpt"
  cp "$graphs/tfadd_with_ckpt/graph.saver" "$models/test_graph_tfadd_with_ckpt_saver.saver"
  sed -i 's|"//tensorflow/compiler/aot:tfcompile.bzl"|"@tfcompile//:tfcompile.bzl"|' "$models/BUILD"
  diff -r "$written/my" "$work/tensorflow/my" | grep '^[<>]' >"$logs/$system-changed.log" || true
  [ "$(cut -c1-7 "$logs/$system-changed.log")" = $'< load(\n> load(' ] || fail "more than the line with 'load' differs"
  cd "$work/tensorflow"
  log test bazel_at three test //my/models:all
  wants test "//my/models:matmul_test .*PASSED"
  wants test "Executed 4 out of 4 tests: 4 tests pass"
  line "$system" "$((took / 10)).$((took % 10)) s, 4 of 4 tests pass" "" "only this line differs: $(sed -n 's/^> //p' "$logs/$system-changed.log")" >>"$table"
  stop_servers
}

# ---- Cargo

test_cargo() {
  local clean first
  system=cargo
  # Inside the clone, because its crates are the program's dependencies.
  cd "$root/examples/cargo"
  export TFCOMPILE=$prefix/bin/tfcompile
  log clean env -u CARGO_TARGET_DIR cargo build --offline --verbose
  clean=$took
  did clean build_script_build tfcompile_build tfcompile_runtime model scorer
  printed=$(target/debug/scorer)
  printed=${printed%%$'\n'*}
  first=$printed
  [ "$first" = "scores [[14.25, 0.5], [32.25, 0.0]]" ] || fail "it prints '$first'"
  log again env -u CARGO_TARGET_DIR cargo build --offline --verbose
  did again
  wants again "Fresh scorer"
  sed -i 's/float_val: 0.25 float_val: 4/float_val: 0.25 float_val: 5/' model/scorer.pbtxt
  log changed env -u CARGO_TARGET_DIR cargo build --offline --verbose
  did changed model scorer
  printed=$(target/debug/scorer)
  printed=${printed%%$'\n'*}
  [ "$printed" = "scores [[14.25, 1.5], [32.25, 0.0]]" ] || fail "it prints '$printed'"
  row "$clean" "$first"

  system=cargo-init
  initialized cargo "$root/tests/artifacts/layer.pbtxt" --shape x=2,4
  log run env -u CARGO_TARGET_DIR cargo run --offline
  wants run "the model ran"
  # The packaged crate has what programs for GPUs need.
  log device env -u CARGO_TARGET_DIR cargo test --offline --lib --features device --target-dir "$work/device" \
    --manifest-path "$prefix/share/tfcompile/crates/tfcompile-runtime/Cargo.toml"
  wants device "a_device_that_does_not_exist_is_an_error_of_every_use ... ok"
}

# ---- pip

# Tests the package, built from this tree in its target directory, because a build takes long.
# Maturin reads options of the build from MATURIN_PEP517_ARGS.
test_pip() {
  local clean first python install
  system=pip
  have python3 || return 0
  python=$(scripts/venv.sh venv-pip maturin==1.16.0 numpy==1.26.4)
  export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$tree/target}
  PATH=$(dirname "$python"):$PATH
  install=("$python" -m pip install -v --disable-pip-version-check --no-build-isolation --no-deps --upgrade --target "$work/site" "$tree/python")
  log clean "${install[@]}"
  clean=$took
  project
  export PYTHONPATH=$work/site
  prints first "$python" app.py
  first=$printed
  log again "${install[@]}"
  did again
  train_again
  prints trained "$python" app.py
  line "$system" "$((clean / 10)).$((clean % 10)) s, $(steps clean | wc -l) crates, prints ${first//$'\n'/ / }" "nothing" \
    "the model, when the program runs; prints ${printed//$'\n'/ / }" >>"$table"
  unset PYTHONPATH
}

for one; do
  "test_$one"
  cd "$tree"
  echo "test_builds: $one: passed"
done
cat "$table"
