# Everything a checkout needs: each target makes .venv and installs what it uses.
# From a bare clone only Python >= 3.11, pip, git and make have to be there.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# More arguments for the command of a target: make test ARGS="-k retry", make bench ARGS="--quick".
ARGS ?=
# The extra that `test` and `check` need; the tests alone need only `test`.
EXTRA ?= dev
# arize-phoenix lives in an environment of its own: 830 MB, with dependencies that are not ours.
OTLP_VENV ?= .venv-otlp
# The server that scrapes our metrics in test-otlp; the one on the PATH unless named.
TRACEGRAPH_TEST_PROMETHEUS ?= $(shell command -v prometheus)
# The log file that `make demo` reads; found on this machine when empty.
LOG ?=

.DEFAULT_GOAL := help
.PHONY: .prometheus help demo test test-otlp check cover bench bench-signals mutants crash chaos soak clean

help: ## print the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.core ## run a graph on a real log file and show its trace
	@mkdir -p out
	@$(BIN)/tracegraph run examples/log_triage.py:graph --json \
	  --input "$$($(BIN)/python -c 'import json, sys; print(json.dumps(dict(report_path="out/report.md", **({"path": sys.argv[1]} if sys.argv[1] else {}))))' '$(LOG)')" > out/run.json
	@cat out/report.md
	@$(BIN)/tracegraph trace "$$(sed -n 's/.*"trace_id": "\([0-9a-f]*\)".*/\1/p' out/run.json)"

test: $(VENV)/.dev ## run the tests, the documentation's examples included
	$(BIN)/python -m pytest $(ARGS)

test-otlp: .prometheus $(VENV)/.dev $(OTLP_VENV)/.phoenix ## send to real backends and read back: minutes, and 830 MB the first time
	TRACEGRAPH_TEST_PHOENIX="$(abspath $(OTLP_VENV))/bin/phoenix" TRACEGRAPH_TEST_PROMETHEUS="$(TRACEGRAPH_TEST_PROMETHEUS)" \
	  $(BIN)/python -m pytest tests/otlp $(ARGS)

# It is no Python package, so it is looked for and not installed; before everything else, which takes minutes.
.prometheus:
	@test -x "$(TRACEGRAPH_TEST_PROMETHEUS)" -a -x "$(dir $(TRACEGRAPH_TEST_PROMETHEUS))promtool" || { \
	  echo "make test-otlp needs Prometheus, with promtool beside it: apt-get install --no-install-recommends prometheus," >&2; \
	  echo "or unpack a release of https://prometheus.io and name it: make test-otlp TRACEGRAPH_TEST_PROMETHEUS=/path/to/prometheus" >&2; \
	  exit 1; }

check: $(VENV)/.dev ## lint, format, types, layers, changelog fragments
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/towncrier build --draft --version next > /dev/null

cover: $(VENV)/.dev ## run the tests and require full coverage of the deciding rooms
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage report --fail-under=100 --include="tracegraph/engine/*,tracegraph/channels/*,tracegraph/graph/*,tracegraph/events/*"

bench: $(VENV)/.bench ## compare with langgraph, alternating
	@$(BIN)/python -m benchmarks $(ARGS)

bench-signals: $(VENV)/.bench ## what traces, metrics and log records cost a run, alternating
	@$(BIN)/python -m benchmarks.signals $(ARGS)

mutants: $(VENV)/.dev ## seed known mistakes; each must turn the tests red
	$(BIN)/python -m tests.mutants $(ARGS)

crash: $(VENV)/.dev ## kill runs 200 times for each database and durability, and resume them
	TRACEGRAPH_CRASH_ROUNDS=$${TRACEGRAPH_CRASH_ROUNDS:-200} $(BIN)/python -m pytest tests/checkpoint/test_crash.py $(ARGS)

chaos: $(VENV)/.dev ## kill a receiver 50 times during 20,000 runs; every span must arrive
	TRACEGRAPH_CHAOS_RUNS=20000 TRACEGRAPH_CHAOS_KILLS=50 $(BIN)/python -m pytest tests/exporters/spool/test_chaos.py $(ARGS)

soak: $(VENV)/.core ## 200,000 short runs in one process, after which nothing may have grown (ten minutes)
	@$(BIN)/python -m benchmarks.soak $(ARGS)

clean: ## remove the virtual environment, caches and what the demo wrote
	rm -rf $(VENV) .venv-lowest $(OTLP_VENV) out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache htmlcov .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Some distributions split ensurepip off; pip can then install itself into the new environment.
$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else f"tracegraph needs Python 3.11 or newer, and $(PYTHON) is {sys.version.split()[0]}: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV) || ($(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install pip)
	@touch $@

$(VENV)/.core: pyproject.toml $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRA)]'
	@touch $@ $(VENV)/.core

$(VENV)/.bench: pyproject.toml $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@ $(VENV)/.core

$(OTLP_VENV)/.phoenix:
	$(PYTHON) -m venv $(OTLP_VENV) || ($(PYTHON) -m venv --without-pip $(OTLP_VENV) && $(PYTHON) -m pip --python $(OTLP_VENV)/bin/python install pip)
	$(OTLP_VENV)/bin/python -m pip install --quiet --disable-pip-version-check 'arize-phoenix>=20.26'
	@touch $@
