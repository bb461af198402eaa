# Every command that a developer needs; `make help` lists them. Each installs missing prerequisites
# (on Debian) or names them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help

# Directory of the large test sets. If it is absent, their tests are skipped with one line each, or
# fail if CI=true.
export TFCOMPILE_SHARED ?= ../shared
# The digits that `make demo` learns.
DIGITS ?= examples/digits/digits.csv
# Models for `make test-models`. `make test` uses the small ones.
SMALL_MODELS := mlp dscnn_kws resnet8_cifar autoencoder_ad mobilenet_v1_025_96 \
  lstm_train_b32 lstm_train_unrolled_b32 resnet8_train_b32
MODELS ?= $(SMALL_MODELS) mobilenet_v2_224 resnet50_224
# Models for emulators: all nineteen, with the large ones reduced.
CROSS_MODELS := mlp dscnn_kws resnet8_cifar autoencoder_ad mobilenet_v1_025_96 bert_tiny_128 gpt2_block_decode \
  gru_128_seq100 lstm_2x128_seq100 lstm_train_b32 lstm_train_unrolled_b32 mobilenet_v2_96 efficientnet_b0_96 \
  resnet50_64 inception_v3_107 unet_small_64 bert_base_1x104 vit_tiny_2x96 resnet8_train_b4
# Number of HLO modules that `make test` compares with XLA. `make test-xla` compares all.
XLA_SAMPLE ?= 40
# Training steps that `make test-sessions` runs.
EXPERIMENTS ?= all
# A checkout of TensorFlow's source, for the C++ test of its tfcompile.
TENSORFLOW_SOURCE ?=
# External tests: a clone (bare or not) of TensorFlow's or XLA's repository, and a checkout of
# StableHLO's.
XLA ?=
STABLEHLO ?=

TOOL := target/release/tfcompile
CONFORMANCE := target/release/conformance
KNOWN := --known tests/conformance/known_failures.toml
ORACLE := target/release/oracle
SHARED := scripts/shared.sh
# Numbers of threads with which checks run again. The results must equal those of one thread.
export ORACLE_THREADS ?= 2 3
THREADED := $(addprefix --threads=,$(ORACLE_THREADS))

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 28

# ---- build

.PHONY: build
build: ## build target/release/tfcompile, LLVM linked dynamically
	@scripts/setup.sh build
	cargo build --release -p cli

.PHONY: release
release: ## check dependencies (see deny), build a tool to distribute, with LLVM linked statically, and lay it out in target/package
	@scripts/setup.sh release
	@$(MAKE) --no-print-directory deny
	@scripts/release.sh

.PHONY: test-packages
test-packages: ## install what `make release` and `make wheel` wrote in a fresh Debian, and use it (root, debootstrap, buildah; PACKAGES="archive deb ...")
	@scripts/dist/test.sh $(PACKAGES)

.PHONY: offline
offline: ## pack this tree with all crates, and test building it without a network: target/tfcompile-source.tar.gz
	@scripts/offline.sh

.PHONY: demo
demo: build ## learn handwritten digits in compiled code (DIGITS=FILE: other digits)
	@scripts/demo.sh $(DIGITS)

.PHONY: experiments
experiments: build ## compile fourteen training graphs and train each (STEPS=N)
	@examples/experiments/run.sh

.PHONY: mnist
mnist: build ## train on digits in a session with and without just-in-time compilation, and compare with TensorFlow (MNIST=DIR, STEPS=N, TENSORFLOW=off)
	@examples/mnist_softmax/run.sh

# ---- test

.PHONY: test
# Incremental compilation slows down a clean build and speeds up only later builds.
test: export CARGO_INCREMENTAL = 0
test: setup-test lint unit tools oracle experiments conformance test-small-models test-web-sample test-aarch64 test-microcontrollers-sample test-sanitizers test-device-runtime test-gpu-sample test-c-source-sample test-pictures test-json test-xla-sample test-docs test-small-builds ## run every test that must pass: at most 35 minutes on 2 cores
	@echo "make test: all passed"

.PHONY: test-all
test-all: test test-faults test-web test-gpu test-gpu-sessions test-sessions test-zoo-sample test-onnx test-python test-triton test-scale test-serving test-models test-c-source test-large-decoder test-cross test-microcontrollers test-targets test-xla test-recipes test-original ## run "make test" and the slower tests

.PHONY: setup-test
setup-test:
	@scripts/setup.sh test

.PHONY: lint
lint: ## check formatting, clippy, links in comments, tidy, and whether the README's chart and the recipes' diffs are current
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	cargo xtask tidy
	scripts/bench/chart.py --check docs/bench.json docs/bench.svg
	scripts/gpu/page.py --check
	scripts/zoo/page.py --check
	scripts/serving/page.py --check
	scripts/test_recipes.sh

.PHONY: docs
docs: ## generate the pages about ops and the command line, and the listings of the walkthrough
	UPDATE_DOCS=1 cargo test --quiet -p import --test docs
	UPDATE_DOCS=1 cargo test --quiet -p cli --test docs
	UPDATE_DOCS=1 cargo test --quiet -p compiler --test walkthrough

.PHONY: book
book: ## build docs/ as a site in target/book (needs mdbook: cargo install mdbook)
	mdbook build docs

.PHONY: deny
deny: ## check licenses, duplicate versions, sources, and advisories of dependencies (ADVISORIES=DIR: a clone of RustSec's advisory-db)
	@cargo deny --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-deny
	@scripts/dist/supply_chain.sh

.PHONY: unit
# Sessions are tested on a device of OpenCL, too, and kernels of GPUs are assembled.
unit: ## run unit, file, and consumer tests
	@eval "$$(scripts/setup_gpu.sh all)" && export OCL_ICD_VENDORS LD_LIBRARY_PATH TFCOMPILE_PTXAS && cargo xtask test

.PHONY: tools
tools:
	cargo build --release -p cli -p conformance

.PHONY: oracle
oracle: tools ## compare whole programs with the recorded results of TensorFlow
	$(ORACLE) tests/oracle --tool $(TOOL) $(THREADED)
	$(SHARED) oracle $(ORACLE) {} --tool $(TOOL) $(THREADED)

.PHONY: conformance
# Runs the cases compiled, then with the evaluator.
conformance: tools ## run the recorded cases; fail on any unlisted failure, and on any listed case that passes
	$(CONFORMANCE) tests/conformance
	$(CONFORMANCE) tests/conformance --evaluator
	target/release/tflite-cases tests/tflite --known tests/tflite/known_failures.toml
	target/release/tflite-cases tests/tflite --evaluator --known tests/tflite/known_failures.toml
	target/release/stablehlo-cases --fixed --tolerance 2e-5 tests/stablehlo/symbolic/*.jax
	target/release/onnx-cases tests/onnx
	target/release/onnx-cases tests/onnx --evaluator
	$(SHARED) conformance/cases $(CONFORMANCE) {} $(KNOWN)
	$(SHARED) conformance/cases_raw $(CONFORMANCE) {} $(KNOWN)
	$(SHARED) conformance/cases $(CONFORMANCE) {} --evaluator $(KNOWN)
	$(SHARED) conformance/cases_raw $(CONFORMANCE) {} --evaluator $(KNOWN)

.PHONY: test-models test-small-models
test-models: tools ## create large models once, compile and check them (MODELS="mlp ...")
	$(SHARED) oracle scripts/models.sh {} $(MODELS)
test-small-models: tools
	$(SHARED) oracle scripts/models.sh {} $(SMALL_MODELS)

.PHONY: test-c-source test-c-source-sample
test-c-source: tools test-small-models ## compile all recorded cases and the small models as C source with several C compilers, and compare results
	@scripts/setup.sh c-source
	scripts/c_source/test.sh all
test-c-source-sample: tools
	scripts/c_source/test.sh sample

.PHONY: test-large-decoder
test-large-decoder: tools ## compile a decoder of 1.1 billion parameters in int8 and int4, and check its words, memory, and sizes (4 GB of disk)
	"$$(scripts/venv.sh venv tensorflow-cpu==2.15.1 numpy==1.26.4)" scripts/test_large_decoder.py $(TOOL) target/large_decoder

.PHONY: test-aarch64 test-cross
# Skips the recurrent layer, which takes minutes in the emulator.
test-aarch64: tools
	GRAPHS=tfcompile_tests/tf scripts/test_cross.sh aarch64
test-cross: tools ## run programs and all models (reduced) in emulators: aarch64, armv7, riscv64, every level of x86-64, Windows in Wine
	@scripts/setup.sh cross
	$(SHARED) oracle scripts/models.sh {} $(CROSS_MODELS)
	MODELS="$(CROSS_MODELS)" scripts/test_cross.sh aarch64 armv7 riscv64 riscv64-v x86-64 x86_64-windows
	GRAPHS=tfmatmul scripts/test_cross.sh aarch64-sve256 aarch64-sve512 riscv64-v256
	TEST_CROSS=true cargo test -p cli --test main --quiet -- artifacts::freestanding formats
	TEST_CROSS=true cargo test -p kernel --test main --quiet emulators

.PHONY: test-targets
test-targets: tools ## run cases of each kind of input on each machine that can be emulated here, and write the table of docs/targets.md (COUNT=N ONLY=REGEX)
	scripts/targets/test.sh $(TOOL) $(if $(COUNT),--count $(COUNT)) $(if $(ONLY),--only '$(ONLY)',--page docs/targets.md)

.PHONY: test-microcontrollers test-microcontrollers-sample
test-microcontrollers: tools ## run recorded cases, the networks of MLPerf Tiny, and the projects of `init` on emulated microcontrollers: target/microcontrollers
	@scripts/setup.sh test
	scripts/microcontrollers/test.sh $(TOOL) all --table target/microcontrollers/networks.json
	"$$(scripts/venv.sh venv-projects pyyaml==6.0.2)" scripts/microcontrollers/projects.py $(TOOL)
test-microcontrollers-sample: tools
	scripts/microcontrollers/test.sh $(TOOL) sample

.PHONY: test-web test-web-sample
test-web: tools ## run recorded cases as WebAssembly in Node and Deno, complete WASI programs in wasmtime, and the page of `init --build web` in a browser
	scripts/test_web.sh all
test-web-sample: tools
	scripts/test_web.sh sample

.PHONY: test-sanitizers
test-sanitizers: tools ## run the small models with address and thread sanitizers (CANDIDATES=1: with each strategy of their kernels)
	scripts/test_sanitizers.sh $(if $(CANDIDATES),--candidates)

.PHONY: test-faults
test-faults: tools ## run the tool while each call on files fails, memory and threads run out, and clocks jump
	scripts/test_faults.sh $(TOOL) all

.PHONY: test-memory
test-memory: ## run the Rust runtime under Miri and the tool under sanitizers; needs a nightly toolchain with miri and rust-src
	scripts/test_memory.sh

.PHONY: test-device-runtime
test-device-runtime: ## test the runtime of GPU programs without a GPU: a stand-in for CUDA's driver, and OpenCL on processors (INSTALL=1: install that)
	scripts/test_device_runtime.sh

.PHONY: test-pictures
test-pictures: tools ## render graph and profile pages in a headless browser: target/pictures
	scripts/test_pictures.sh $(TOOL)

.PHONY: test-xla test-xla-sample
test-xla: setup-test ## let XLA parse and run our output in every form, and compare the results (CASES=N)
	scripts/test_xla.sh
	examples/experiments/xla.sh
test-xla-sample: setup-test
	scripts/test_xla.sh --sample $(XLA_SAMPLE)

.PHONY: test-json
test-json: tools ## check what --json prints against docs/schema.json, and docs/json.md (UPDATE=--update: write it)
	$$(scripts/venv.sh venv-json jsonschema==4.25.1 numpy==1.26.4) scripts/json_schema.py "$(TOOL)" $(UPDATE)

.PHONY: test-docs
# The commands of other pages run in test-builds, test-python, test-triton, and crates' tests.
PAGES ?= start models from-jax precision language-models header embedded c-source training weights custom-calls verify report targets web sessions hlo walkthrough \
  $(addprefix errors/,command-line graphs interface sizes ops models hlo running)
test-docs: tools ## run the commands of the README and of pages in docs/, each in an empty directory (PAGES="start ...", UPDATE=--update: rewrite transcripts that differ)
	scripts/test_docs.sh $(UPDATE) README.md $(PAGES:%=docs/%.md)

.PHONY: test-recipes
test-recipes: setup-test ## build and test the worked examples of docs/contributing in a copy of this tree
	scripts/test_recipes.sh --build

.PHONY: test-builds test-small-builds
test-builds: tools ## build a small project with each build system, from scratch and after changes: target/builds
	@scripts/setup.sh builds
	scripts/test_builds.sh $(TOOL)
test-small-builds: tools
	scripts/test_builds.sh $(TOOL) cmake cargo

.PHONY: wheel test-python
wheel: ## build the Python package, with LLVM linked statically: target/wheels
	@scripts/setup.sh release
	scripts/wheel.sh
test-python: setup-test ## test the Python package, and compare it with TensorFlow and JAX (WHEEL=FILE: of this wheel)
	scripts/test_python.sh $(WHEEL)

.PHONY: triton test-triton
triton: ## build the backend of Triton Inference Server: target/backends/tfcompile
	@scripts/triton/build.sh
test-triton: build ## test that backend in the server, in a stand-in under sanitizers and valgrind, and the commands of its page (TRITON_CORE_INCLUDE=DIR: compare with the server's headers)
	@scripts/setup.sh venv
	scripts/triton/test.sh $(TOOL)

.PHONY: test-scale
test-scale: ## score data sets on Ray Data, Spark, and Dask, and train with MPI, while workers are killed (PARTS="ray spark dask train", WHEEL=FILE: with this wheel)
	@scripts/setup.sh scale
	scripts/test_scale.sh $(if $(WHEEL),--wheel $(WHEEL)) $(PARTS)

.PHONY: test-serving
test-serving: ## serve models with Ray Serve, run the commands of docs/serving.md, and cause faults under load (SOAK=SECONDS: then a soak; WHEEL=FILE)
	WHEEL=$(WHEEL) scripts/serving/run.sh test $(if $(SOAK),--soak $(SOAK)) --record target/serving-faults.json

.PHONY: test-gpu test-gpu-sample
test-gpu: tools ## run all recorded cases, the oracle, and models on an OpenCL runtime for processors, and assemble all PTX
	scripts/test_gpu.sh all
test-gpu-sample: tools
	scripts/test_gpu.sh sample

.PHONY: gpu-check
gpu-check: ## pack programs, cases, and a script for a machine with CUDA: target/gpu-check.tar.gz (CASES=N)
	@scripts/gpu/pack.sh $(CASES)

.PHONY: test-gpu-sessions
test-gpu-sessions: build ## run sessions on an OpenCL device for processors: placement, the fourteen training steps, mnist
	@eval "$$(scripts/setup_gpu.sh opencl)" && export OCL_ICD_VENDORS LD_LIBRARY_PATH TFCOMPILE_DEVICE_DRIVER=opencl && \
	cargo test -p session --test main gpu && \
	for device in GPU:0 XLA_GPU:0; do \
		TFCOMPILE_DEVICE=/device:$$device TFCOMPILE_EXPERIMENTS="$(EXPERIMENTS)" \
			cargo test -p session --test batches -- --nocapture || exit 1; \
	done && \
	DEVICE=XLA_GPU:0 STEPS=$(or $(STEPS),5) examples/experiments/run.sh && \
	DEVICE=XLA_GPU:0 TENSORFLOW=off OUT=target/mnist_gpu STEPS=$(or $(STEPS),200) examples/mnist_softmax/run.sh

.PHONY: test-sessions
test-sessions: ## run the fourteen training steps in sessions: node by node, clustered, as one cluster, with changing batches (EXPERIMENTS="fc ...")
	TFCOMPILE_EXPERIMENTS="$(EXPERIMENTS)" cargo test --workspace --test batches --test experiments -- --nocapture

ZOO_SAMPLE = ^(mediapipe|pymicro|@vladmandic|silero|openwakeword|text2tashkeel)|keras/(MobileNetV2|RegNetY002)$$|networks/|flax/(Wmt|Molecule)|transformers/(Bert|T5|Whisper)$$|JraphGAT

.PHONY: test-zoo test-zoo-sample
test-zoo: build ## compare the models of packages and of frameworks with what runs them elsewhere (JUDGE=litert|tfjs|onnx|tensorflow|jax ONLY=REGEX BENCH=1 RECORD=FILE)
	scripts/zoo/zoo.sh --record $(or $(RECORD),target/zoo/zoo.json) $(if $(JUDGE),--judge $(JUDGE)) $(if $(ONLY),--only '$(ONLY)') $(if $(BENCH),--bench)

test-zoo-sample: build
	scripts/zoo/zoo.sh --only '$(ZOO_SAMPLE)'

.PHONY: test-onnx
test-onnx: tools ## run all tests of ONNX's package, and models of ONNX Runtime's ops
	scripts/test_onnx.sh

.PHONY: test-external
test-external: tools ## run the HLO texts of XLA's unit tests and StableHLO's own tests (XLA=CLONE STABLEHLO=CHECKOUT)
	@scripts/test_external.sh "$(XLA)" "$(STABLEHLO)"

.PHONY: test-original
test-original: tools ## run the C++ test of TensorFlow's tfcompile (TENSORFLOW_SOURCE=DIR)
	@if [ -z "$(TENSORFLOW_SOURCE)" ]; then echo "skipped: the original's C++ test (set TENSORFLOW_SOURCE)"; else \
	  $(TOOL) headers -o target/include && \
	  python=$$(scripts/venv.sh venv tensorflow-cpu==2.15.1 numpy==1.26.4) && \
	  $(SHARED) tools "$$python" {}/tfcompile_test/run.py --src $(TENSORFLOW_SOURCE) --python "$$python" \
	    --tool $(TOOL) --include target/include --include /usr/include/eigen3; fi

# ---- measure

.PHONY: bench bench-int8 bench-kernels bench-microcontrollers bench-serving bench-web
bench: build ## compare with other compilers and runtimes: target/bench/table.md, bench.svg (MODELS, PEERS, SETUP, THREADS, ROUNDS, BATCHES)
	scripts/bench/run.sh target/bench
bench-int8: build ## compare int8 models with LiteRT, ONNX Runtime, and OpenVINO: target/bench/int8.json
	scripts/bench/int8.sh target/bench
bench-web: build ## compare modules for the web with other runtimes in headless Chromium: docs/web.json, docs/web.md (MODELS, ROUNDS)
	scripts/web/bench/run.sh target/web-bench
bench-microcontrollers: test-microcontrollers ## compare with TensorFlow Lite Micro in QEMU: docs/embedded.md (PEER=DIR: checkouts that scripts/microcontrollers/peer.py names)
	"$$(scripts/venv.sh venv-litert ai-edge-litert==2.3.0 numpy==2.4.6)" scripts/microcontrollers/peer.py "$(PEER)" \
	  "$${XDG_CACHE_HOME:-$$HOME/.cache}/tfcompile-models" target/microcontrollers/networks.json --page docs/embedded.md
bench-serving: ## compare compiled models with ONNX Runtime in Ray Serve: target/serving-bench.json (ONLY=WORKLOAD ROUNDS=N WHEEL=FILE)
	WHEEL=$(WHEEL) scripts/serving/run.sh bench target/serving-bench.json $(if $(ONLY),--only '$(ONLY)') $(if $(ROUNDS),--rounds $(ROUNDS))
	@echo "to publish, after make test-serving SOAK=480: scripts/serving/page.py --record target/serving-bench.json target/serving-faults.json"
bench-kernels: ## measure kernels as shares of the machine's peak
	@scripts/setup.sh build
	cargo bench --quiet -p runner --bench kernels

.PHONY: test-exhaustive
EVERY ?= 1
SHARE ?= 0/1
test-exhaustive: ## check that elementary functions of all 2^32 floats are within 2 ulp (EVERY=16: every 16th block; SHARE=0/4: a quarter)
	cargo bench --quiet -p kernel --bench every_single -- every=$(EVERY) share=$(SHARE)

.PHONY: fuzz
SEED ?= 0
JOBS ?= 2
KIND ?= all
fuzz: ## compare random graphs with the evaluator (SEED, COUNT, JOBS, KIND)
	cargo run --release -p fuzz-graphs -- --seed $(SEED) --count $(or $(COUNT),100000) --jobs $(JOBS) --kind $(KIND)

.PHONY: fuzz-passes
fuzz-passes: ## run the passes one by one on random graphs, compare before and after each, and count: target/fuzz-passes.json (SEED, COUNT, JOBS, KIND)
	cargo run --release -p fuzz-graphs -- --passes --report target/fuzz-passes.json --seed $(SEED) --count $(or $(COUNT),100000) --jobs $(JOBS) --kind $(KIND)

.PHONY: mutants
# The simplifier has about 1200 possible changes; 100 take half an hour on 2 cores.
MUTATE ?= crates/passes/src/simplify/**
mutants: ## change code of the simplifier at random places, and list the changes that no test notices: target/mutants (SHARD=0/16, MUTATE=FILES PACKAGE=CRATE FILETEST=PART TESTS=NAMES)
	@cargo mutants --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-mutants
	FILETEST=$(or $(FILETEST),hlo/pass) cargo mutants --file '$(MUTATE)' --shard $(or $(SHARD),0/16) --sharding round-robin \
	  --baseline skip --timeout 60 --test-package filetest,$(or $(PACKAGE),passes) -o target/mutants -- --lib --test hlo $(addprefix --test ,$(TESTS))

.PHONY: fuzz-readers
fuzz-readers: ## run the readers of files on inputs that libFuzzer derives from the tests' (SECONDS for each, READERS="onnx npz"); needs a nightly toolchain
	@cargo fuzz --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-fuzz
	scripts/fuzz_readers.sh $(or $(SECONDS),60) $(READERS)

.PHONY: clean
clean: ## remove what was built
	cargo clean
