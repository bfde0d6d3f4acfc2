# A thin front to CMake: everything real is in CMakeLists.txt and CMakePresets.json.
PRESET ?= release
PREFIX ?= /usr/local
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc)

.DEFAULT_GOAL := build
.PHONY: help deps build test test-full run bench bench-peers docs reports oracle format install test-asan test-tsan ci configure

help:  ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  %-11s %s\n", $$1, $$2}'

deps:  ## Install the Debian packages that are missing (with sudo when not root)
	@sh cmake/install-packages.sh cmake/packages.txt

# A machine with its own LLVM and oneDNN may build without Debian's packages: CMake says what it does not find.
configure:
	@sh cmake/install-packages.sh cmake/packages.txt || echo "make: trying to build without the missing packages"
	@test -f $(BUILD)/build.ninja || cmake --preset $(PRESET)

build: configure  ## Build the library, the tests and the examples (PRESET=release, asan or tsan)
	@cmake --build --preset $(PRESET) --parallel $(JOBS)

# Which samples of the op table tests visit; make test STET_TEST_SEED=number repeats a run.
ifndef STET_TEST_SEED
STET_TEST_SEED := $(shell date +%s)
endif
export STET_TEST_SEED

test: build  ## Build and run all tests; of the op table's samples, some for every row and type
	@echo "STET_TEST_SEED=$(STET_TEST_SEED)"
	@ctest --preset $(PRESET) --parallel $(JOBS)

test-full: build  ## Build and run all tests with all samples
	@STET_TEST_FULL=1 ctest --preset $(PRESET) --parallel $(JOBS)

run: build  ## Train on Fashion-MNIST (ARGS="--logs folder": with files for TensorBoard)
	$(BUILD)/examples/fashion_mnist $(ARGS)

bench:  ## Install what benchmarks need (LibTorch), build them, run them
	@sh cmake/install-packages.sh cmake/packages-bench.txt
	@$(MAKE) --no-print-directory build PRESET=bench
	@cmake --build --preset bench --target run_bench

# make bench-peers QUICK=1 only shows that all of it works, and writes no page. PEERS_PYTHON names the Python of a virtual environment
# that is there; PEERS has further words for bench/peers/peers.py, such as --workloads cnn,lstm or --threads 16.
PEERS_PYTHON ?= build/peers-venv/bin/python
bench-peers: configure  ## Time stet beside TensorFlow, JAX and PyTorch, and write the tables of docs/benchmarks.md
	@cmake --build --preset $(PRESET) --parallel $(JOBS) --target bench_peer_workloads
	@sh bench/peers/environment.sh $(PEERS_PYTHON)
	@python3 bench/peers/peers.py --program $(BUILD)/bench/peer_workloads --python $(PEERS_PYTHON) \
	  $(if $(QUICK),--quick,--page docs/benchmarks.md) $(PEERS)

docs: build  ## Make the parts of docs/ that are made by commands
	@cmake --build --preset $(PRESET) --target docs

# As a first run has it: with no code of earlier ones. Files are named from this folder.
reports: configure  ## Run examples/find_the_retrace for the pages of docs/reports
	@cmake --build --preset $(PRESET) --parallel $(JOBS) --target example_find_the_retrace
	@mkdir -p docs/reports
	@STET_CACHE_DIR= $(BUILD)/examples/find_the_retrace docs/reports

oracle: build  ## Write anew the NumPy values that op tests compare with (after adding a row)
	@sh cmake/install-packages.sh cmake/packages-oracle.txt
	@for rows in OracleFile SpecialFile; do \
	  STET_ROWS_FILE=$(BUILD)/rows.txt $(BUILD)/stet_tests --gtest_brief=1 --gtest_also_run_disabled_tests \
	    --gtest_filter=$$rows.DISABLED_WriteRows || exit 1; \
	done
	@/usr/bin/python3 tests/oracle/make_values.py $(BUILD)/rows.txt tests/oracle

format:  ## Format the sources with clang-format
	@find stet tests bench examples -name '*.h' -o -name '*.cpp' | xargs clang-format -i

install: build  ## Install into PREFIX (make install PREFIX=dir)
	@cmake --install $(BUILD) --prefix $(abspath $(PREFIX))

test-asan:  ## Run all tests with the address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory test PRESET=asan

test-tsan:  ## Run the public tests with the thread sanitizer
	@$(MAKE) --no-print-directory test PRESET=tsan

# Three builds, then the tests of all of them in one run with one summary. A build that fails is begun once more: gcc gives
# up, once in some thousand files, where the address of a precompiled header is taken ("PCH allocation failure").
ci:  ## Build release, asan and tsan, and run the tests of all three
	@for preset in release asan tsan; do \
	  $(MAKE) --no-print-directory build PRESET=$$preset || $(MAKE) --no-print-directory build PRESET=$$preset || exit 1; done
	@mkdir -p build/ci
	@echo 'subdirs("../release" "../asan" "../tsan")' > build/ci/CTestTestfile.cmake
	@echo "STET_TEST_SEED=$(STET_TEST_SEED)"
	@ctest --test-dir build/ci --output-on-failure --parallel $(JOBS)
