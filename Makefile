# `make demo` and `make test` need only Python >= 3.10 and make: they set up .venv themselves.
# `make help` lists the rest.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
JOBS   ?= 2
# The slow tests lie next to each other: who has done its share takes from what is left of the others'.
PARALLEL := -n $(JOBS) --dist worksteal
PYTEST_ARGS ?=
PACKAGES := chromium postgresql gcc libc6-dev

# The runs of benchmarks and demos stay in the folders that they run in.
export UNSTALL_STATE := .unstall

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

.PHONY: help setup system demo test check quick lint format types unit attack long fuzz sanitize wheel docs accuracy heldout unseen overhead \
        simplify-bench predictions-bench warm-caches-bench stack-samples-bench model-bench optimize-bench quick-bench sameness-bench anomaly-bench prove-bench trace-bench gate-bench \
        ranks-bench nodes-bench frameworks-bench public-bench real-bench rival-bench page-bench gpu-check lock clean

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv and install everything, pinned (done by the others when needed)

# Done once, and again when what is installed would change.
$(READY): requirements-dev.lock pyproject.toml setup.py $(wildcard src/unstall/*/native/* src/unstall/*/*/native/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "unstall needs Python 3.10 or newer, and $(PYTHON) is " + sys.version.split()[0])'
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements-dev.lock
	@# pip compiles one file after the other; some packages bring templates that do not compile at all.
	@$(BIN)/python -m compileall -qq -j $(JOBS) $(VENV)/lib || true
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

system: ## install the Debian packages that some tests need; where they cannot be, those tests are skipped
	@if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    apt-get update --quiet >/dev/null; \
	    apt-get install --yes --quiet --no-install-recommends $(PACKAGES) >/dev/null; \
	else \
	    echo "system: not root on Debian; for all tests install chromium, postgresql and a C compiler yourself"; \
	fi

demo: $(READY) ## watch unstall diagnose a slow image classifier on real photographs
	$(BIN)/unstall run examples/hotdog/train.py --epochs 1

test: lint types unit ## lint, types and the whole test suite

check: lint types quick ## lint, types and the quick tests: before every commit

lint: $(READY) ## check style, formatting and which package imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

format: $(READY) ## put style and formatting right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY) ## check types
	$(BIN)/mypy

# Tests that measure time or load run alone, after the rest; all of them are in tests/e2e. Property tests draw the same
# examples every time, so that a change is judged by what it changed; `make fuzz` looks for new ones. What fails is run
# once more alone, for all to see: programs that unstall watches share their cores with others, and a fault of ours
# fails again.
DAILY := not attack and not long
BESIDE := -m "not serial and $(DAILY)" --hypothesis-profile=ci
ALONE := -m "serial and $(DAILY)" --hypothesis-profile=ci tests/e2e
AGAIN := $(BIN)/python -m pytest --last-failed --last-failed-no-failures none
# The programs of the tests write no bytecode: without any, each of them would compile unstall anew. An installed
# package has it.
COMPILE := $(BIN)/python -m compileall -q src
# Threads that spin while they wait take the cores from the programs of the other test.
unit quick attack long: export OMP_WAIT_POLICY := PASSIVE
unit: $(READY) ## run the tests only (PYTEST_ARGS="-k name" to choose)
	$(COMPILE)
	$(BIN)/python -m pytest $(PARALLEL) $(BESIDE) $(PYTEST_ARGS) || { test $$? -eq 1; echo "unit: what failed, once more alone"; \
	    $(AGAIN) $(BESIDE) $(PYTEST_ARGS); }
	$(BIN)/python -m pytest $(ALONE) $(PYTEST_ARGS) || { code=$$?; test $$code -eq 5 || { test $$code -eq 1; \
	    echo "unit: what failed, once more"; $(AGAIN) $(ALONE) $(PYTEST_ARGS); }; }

quick: $(READY) ## the unit tests that take less than ten seconds each
	$(COMPILE)
	$(BIN)/python -m pytest -q $(PARALLEL) -m "not slow and not serial" --hypothesis-profile=ci tests/unit tests/zoo $(PYTEST_ARGS)

# Every odd program there is a case of, with unstall and without, and every way to write a file in the sandbox; as root, and
# by root as an ordinary user too. A part of it is in `make test`.
attack: $(READY) ## hostile and odd programs: does unstall change anything of theirs, do they get out of the sandbox?
	$(BIN)/python -m pytest -q $(PARALLEL) tests/attack $(PYTEST_ARGS)
	$(BIN)/python -m pytest -q -m attack tests/e2e $(PYTEST_ARGS)

long: $(READY) ## the tests that take minutes, and further cases of others
	$(BIN)/python -m pytest -q -m long $(PYTEST_ARGS)

# Rounds of them, each with examples of its own, until the time is over; the last round is ended in full.
FUZZ_SECONDS ?= 3600
fuzz: $(READY) ## the property tests and mutated files, with examples of their own, for FUZZ_SECONDS (an hour)
	@end=$$((SECONDS + $(FUZZ_SECONDS))); round=0; \
	while [ $$round = 0 ] || [ $$SECONDS -lt $$end ]; do \
	    round=$$((round + 1)); echo "fuzz: round $$round"; \
	    $(BIN)/python -m pytest -q $(PARALLEL) -m hypothesis --hypothesis-profile=fuzz tests/attack/fuzz tests/unit \
	        $(PYTEST_ARGS); \
	done

# The unit and property tests of what is in C, with a build of its own that ends at the first access out of bounds, use
# after free, overflow or the like. Python itself leaks by design. The test that is left out is about how long calls take.
SANITIZED := tests/unit/trace/test_scanners.py tests/unit/trace/test_timeline.py tests/unit/trace/test_kineto_dirty.py \
    tests/unit/trace/test_replay.py tests/unit/child/test_recorder.py tests/unit/child/test_spanfunction.py \
    tests/unit/child/test_ticks.py tests/unit/child/test_harmless.py \
    tests/unit/child/sandbox/test_audit.py
SANITIZER := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g
sanitize: $(READY) ## the C code under AddressSanitizer and UndefinedBehaviorSanitizer
	rm -rf build/sanitize
	CFLAGS="$(SANITIZER)" LDFLAGS="-fsanitize=address,undefined" $(BIN)/python setup.py --quiet build \
	    --build-base build/sanitize --build-lib build/sanitize/lib
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so)" PYTHONPATH=build/sanitize/lib PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0:halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	    $(BIN)/python -m pytest -p no:cacheprovider $(SANITIZED) --hypothesis-profile=ci \
	    --deselect tests/unit/child/test_recorder.py::test_cpu_time_is_measured_of_names_that_last $(PYTEST_ARGS)

wheel: $(READY) ## what is published, in dist/, and that it installs and runs without a compiler
	rm -rf dist
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist
	$(BIN)/python -m pytest tests/package $(PYTEST_ARGS)

docs: $(READY) ## build the documentation into site/
	$(BIN)/mkdocs build --strict

accuracy: $(READY) ## how often the verdict is right, over tests/zoo
	$(BIN)/python bench/accuracy.py --results bench/results/accuracy.json --write docs/accuracy.md
	$(BIN)/python bench/accuracy.py --layout installed --no-twin --write docs/accuracy.md

heldout: $(READY) ## the same, over programs that nothing was tuned on
	$(BIN)/python bench/accuracy.py --zoo bench/heldout --results bench/results/heldout.json --write docs/accuracy.md

unseen: $(READY) ## the same, over programs that were written last
	$(BIN)/python bench/accuracy.py --zoo bench/unseen --results bench/results/unseen.json --write docs/accuracy.md

overhead: $(READY) ## what recording costs, next to other profilers
	$(COMPILE)
	$(BIN)/python bench/overhead.py --rows bench/results/overhead.json --write docs/overhead.md

simplify-bench: $(READY) ## measured headroom against the true speed-up, over tests/zoo
	$(BIN)/python bench/simplify.py --rows bench/results/simplify.json --write docs/simplify-accuracy.md

PREDICTED_APART := predictions-unseen predictions-heldout-warm predictions-heldout predictions-heldout-two-cores
predictions-bench: $(READY) ## what the model predicts of experiments against what they measure, over tests/zoo
	$(BIN)/python bench/predictions.py --rows bench/results/predictions.json $(PREDICTED_APART:%=--held-out bench/results/%.json) \
		--write docs/prediction-accuracy.md

warm-caches-bench: $(READY) ## how much faster the rest of a step runs without a function, against the law, over tests/zoo and bench/heldout
	$(BIN)/python bench/warm_caches.py --rows bench/results/warm_caches.json
	$(BIN)/python bench/warm_caches.py --zoo bench/heldout --rows bench/results/warm_caches.json --write docs/warm-caches.md

stack-samples-bench: $(READY) ## how much of a program its stack samples show a function to be, against a sampler that stops it
	$(BIN)/python bench/stack_samples.py --rows bench/results/stack_samples.json --write docs/stack-samples.md

frameworks-bench: $(READY) ## programs of many frameworks with a planted stall: is it found, are outputs the same?
	$(BIN)/python bench/frameworks.py --results bench/results/frameworks.json --write docs/frameworks.md

ranks-bench: $(READY) ## 1,024 ranks on 128 nodes: who is found late, in what time and memory
	$(BIN)/python bench/ranks.py

nodes-bench: $(READY) ## two simulated machines, clocks hours apart: how far off they are put on one
	$(BIN)/python bench/nodes.py

model-bench: $(READY) ## the pipeline model's predictions against real loaders
	$(BIN)/python bench/model.py

optimize-bench: $(READY) ## speed-up reached against the expert's, over tests/zoo and the example
	$(BIN)/python bench/optimize.py --rows bench/results/optimize.json --write docs/optimize-figures.md --readme README.md

quick-bench: $(READY) ## seconds of `unstall optimize --quick` to a change that pays, over bench/heldout
	$(BIN)/python bench/quick.py --rows bench/results/quick.json --put docs/optimize.md

sameness-bench: $(READY) ## how far rounding and more than rounding lie from the limit between them
	$(BIN)/python bench/sameness.py --write docs/sameness.md

anomaly-bench: $(READY) ## what autograd's anomaly detection costs, by which a report adds it up
	$(BIN)/python bench/anomaly_detection.py --write docs/anomaly-detection.md

prove-bench: $(READY) ## how often `unstall prove` is fooled, and wrongs an honest change, over bench/hacks
	$(BIN)/python bench/prove.py --rows bench/results/prove.json --write docs/prove-figures.md

trace-bench: $(READY) ## reading large traces, next to HolisticTraceAnalysis
	$(BIN)/python bench/trace.py --write docs/trace-speed.md

gate-bench: $(READY) ## false alarms and misses of `unstall gate`, simulated and on real runs
	$(BIN)/python bench/gate.py --real 6

FOLDERS ?= ../public
public-bench: $(READY) ## programs of others, from the checkouts in FOLDERS: verdict, outputs bit for bit, overhead
	$(COMPILE)
	$(BIN)/python bench/public.py $(FOLDERS) --rows bench/results/public.json --write docs/public-programs.md

real-bench: $(READY) ## others' programs before a known fix, from the clones in FOLDERS: culprit, gain, what optimize reaches
	$(BIN)/python bench/real.py $(FOLDERS) --rows bench/results/real.json --write docs/real-programs.md --put README.md

rival-bench: $(READY) ## train-doctor, in a virtual environment of its own (RIVAL=its command), beside unstall; EXAMPLES=pytorch/examples
	$(BIN)/python bench/train_doctor.py $(RIVAL) $(if $(EXAMPLES),--examples $(EXAMPLES)) --rows bench/results/train_doctor.json \
		--write docs/comparison.md

page-bench: $(READY) ## the HTML report of a million steps, in Chromium
	$(BIN)/python bench/page.py

gpu-check: $(READY) ## planted GPU cases and programs beside their fixed twins; says so and stops where there is no GPU
	$(BIN)/python bench/gpu_check.py --put docs/gpu-check.md
	@if $(BIN)/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then \
	    $(BIN)/python bench/accuracy.py --zoo bench/gpu --seconds 8 --results bench/results/gpu.json --put docs/gpu-check.md && \
	    { $(BIN)/python -m pytest -m gpu $(PYTEST_ARGS) || test $$? -eq 5; }; \
	fi

lock: $(READY) ## pin the newest versions of everything again
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.10 \
	    --extra all --extra bench --extra dev --extra docs --extra mlflow --extra opentelemetry --extra parquet \
	    --extra torch --extra wandb --constraint constraints.txt --no-annotate \
	    --custom-compile-command 'make lock' --output-file requirements-dev.lock pyproject.toml

clean: ## remove what was built (not .venv, not the example's images)
	rm -rf $(READY) build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	find src tests examples bench -name __pycache__ -type d -prune -exec rm -rf {} +
	find src -name '*.so' -delete
