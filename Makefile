# Everything here sets itself up: it needs make and Python 3.11 or newer, nothing else.
# Packages come in the versions and with the hashes of requirements/*.txt, into .venv.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.SUFFIXES:
.PHONY: help demo test test-slow test-all quick test-long test-oldest check format docs bench accuracy bench-gpu lock clean

VENV := .venv
BENCH_VENV := .venv-bench
DOCS_VENV := .venv-docs
OLDEST_VENV := .venv-oldest
BIN := $(VENV)/bin
UV ?= uv
PYTEST_ARGS ?=
WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest -n $(WORKERS)

PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
LOCK := $(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command "make lock" pyproject.toml

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.run-ready ## Make a small crowd, fuse its responses, show what came out
	@$(BIN)/python -m tiebreak demo

test: $(VENV)/.dev-ready ## Run the tests to run before a commit; PYTEST_ARGS="-k links" runs some
	@$(PYTEST) -m "not long and not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/.dev-ready ## Run the tests that `make test` leaves out: kills, clusters, browsers
	@$(PYTEST) -m "not long and slow" $(PYTEST_ARGS)

test-all: $(VENV)/.dev-ready ## Run both: every test but the long ones
	@$(PYTEST) -m "not long" $(PYTEST_ARGS)

quick: $(VENV)/.dev-ready ## Run the tests to run while typing: some of `make test`, within a minute
	@$(PYTEST) -m "not long and quick" $(PYTEST_ARGS)

test-long: $(VENV)/.dev-ready ## Run the tests that take minutes each, which `make test-all` leaves out
	@$(PYTEST) -m long $(PYTEST_ARGS)

test-oldest: $(OLDEST_VENV)/.oldest-ready ## Run the quick tests on the oldest versions that pyproject.toml allows
	@$(OLDEST_VENV)/bin/python -m pytest -n $(WORKERS) -m "not long and quick" $(PYTEST_ARGS)

check: $(VENV)/.dev-ready ## Check format, lint, types and the import rule
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev-ready ## Put every file into the house format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(DOCS_VENV)/.docs-ready ## Build the documentation as a site, build/docs; needs no network once installed
	@$(DOCS_VENV)/bin/python -m sphinx -q -W --keep-going -c docs -b html . build/docs
	@echo "Open build/docs/docs/index.html"

bench: $(BENCH_VENV)/.bench-ready ## Measure speed and memory, beside crowd-kit, in an environment of its own
	@$(BENCH_VENV)/bin/python -m benchmarks

accuracy: $(VENV)/.dev-ready ## Compare methods on real crowds, where they are here, and write docs/accuracy.md
	@OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m benchmarks.accuracy --again --jobs $(WORKERS)

bench-gpu: ## Measure sweeps on a CUDA device, where there is one, and write docs/gpu.md
	@PYTHONPATH=src python3 -m benchmarks.gpu
	@PYTHONPATH=src python3 -m benchmarks.gpu_fit
	@PYTHONPATH=src python3 -m benchmarks.report_gpu

lock: ## Renew requirements/*.txt from pyproject.toml; needs uv
	$(LOCK) --group build --extra plot --extra page --extra dask --extra datasets --group test --group check --output-file requirements/dev.txt
	$(LOCK) --group build --constraints requirements/dev.txt --output-file requirements/run.txt
	$(LOCK) --group build --group bench --output-file requirements/bench.txt
	$(LOCK) --group build --extra page --extra dask --extra datasets --group docs --constraints requirements/dev.txt --output-file requirements/docs.txt

clean: ## Remove what the other targets made
	rm -rf $(VENV) $(BENCH_VENV) $(DOCS_VENV) $(OLDEST_VENV) build dist tiebreak-demo out reproduction
	rm -rf .benchmarks .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks experiments -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp stands for "these requirements and the package itself are installed". The package is
# installed in place, by the pinned build backend, so that nothing unpinned is ever fetched.
$(VENV)/.run-ready: requirements/run.txt pyproject.toml | $(VENV)/bin/python
$(VENV)/.dev-ready: requirements/dev.txt pyproject.toml | $(VENV)/bin/python
$(BENCH_VENV)/.bench-ready: requirements/bench.txt pyproject.toml | $(BENCH_VENV)/bin/python
$(DOCS_VENV)/.docs-ready: requirements/docs.txt pyproject.toml | $(DOCS_VENV)/bin/python

$(VENV)/.run-ready $(VENV)/.dev-ready $(BENCH_VENV)/.bench-ready $(DOCS_VENV)/.docs-ready:
	@echo "Installing $< into $(@D) (once; some minutes on a slow line) ..." >&2
	@$(@D)/bin/python $(PIP_INSTALL) --require-hashes -r $<
	@$(@D)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# No hashes here: what the oldest versions need in turn is left to pip.
$(OLDEST_VENV)/.oldest-ready: requirements/oldest.txt pyproject.toml | $(OLDEST_VENV)/bin/python
	@echo "Installing $< into $(@D) (once; some minutes on a slow line) ..." >&2
	@$(@D)/bin/python $(PIP_INSTALL) -r $<
	@$(@D)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# The first Python that is new enough: the one that PYTHON names, or else one on the PATH.
$(VENV)/bin/python $(BENCH_VENV)/bin/python $(DOCS_VENV)/bin/python $(OLDEST_VENV)/bin/python:
	@for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "Making $(patsubst %/bin/python,%,$@) with $$("$$python" --version) ..." >&2; \
			"$$python" -m venv --clear $(patsubst %/bin/python,%,$@) && exit 0; \
			rm -rf $(patsubst %/bin/python,%,$@); \
			echo "$$python could not make a virtual environment." >&2; \
			echo "On Debian or Ubuntu: apt install python3-venv. Then run make again." >&2; \
			exit 1; \
		fi; \
	done; \
	echo "tiebreak needs Python 3.11 or newer, and none was found." >&2; \
	echo "Install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
	exit 1
