# Trunkline's verbs. Each one first sees to it that .venv holds what it needs; see scripts/bootstrap.py.
# Another Python: make PYTHON=python3.12 test. Fewer test processes: make WORKERS=1 test.

.DEFAULT_GOAL := help
.PHONY: help up cluster test coverage test-long check fmt bench faults fuzz docs wheel lock hooks release clean run-environment test-environment lint

BIN := .venv/bin
# Python keeps what it compiled, whatever the shell says: without, every test process compiles all tests anew.
unexport PYTHONDONTWRITEBYTECODE
# More than there are cores: a test that waits for its processes leaves its core to another. The long ones start more of
# them, and each with more memory.
CORES := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
test check coverage: WORKERS ?= $(shell expr $(CORES) + 2)
test-long: WORKERS ?= $(shell expr $(CORES) + 1)
# By file, so that what a file builds for its tests is built once.
# In the order of tests/conftest.py: those that take long first, and not last because they are few.
# A worker that crashes ends the run: with another in its place pytest-xdist may wait for ever.
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0
CODE := $(wildcard src tests bench scripts examples deploy)
# What takes ten seconds and more a test, or needs an installation of its own. `make test` and `make test-long` share all
# tests between them.
LONG := long or wheel or fuzz
# Quick enough to run before every commit: no building, no fuzzing, no browser, no processes whose lives are watched, and
# nothing that takes long to import.
QUICK := -m "not ($(LONG) or slow or process or browser)" \
  --ignore tests/e2e --ignore tests/interop --hypothesis-profile quick
BOOTSTRAP = python=$$(sh scripts/find-python) && "$$python" scripts/bootstrap.py

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: run-environment ## run everything there is, on embedded defaults; Ctrl-C stops it
	@exec $(BIN)/trunkline up

cluster: test-environment ## run three exchanges as one, with three NATS servers and a PostgreSQL; Ctrl-C stops them
	@exec $(BIN)/python scripts/cluster.py

test: lint ## set up what the tests need, and run all checks and tests but the long ones
	@$(PYTEST) -m "not ($(LONG))"

coverage: test-environment ## the tests of `make test` again, to see what they leave out: it must not be more than before
	@$(PYTEST) -m "not ($(LONG))" --cov --cov-report=term:skip-covered

test-long: test-environment ## the long tests: whole conformance runs, real models and peers, fuzzing, installations
	@$(PYTEST) -m "$(LONG)"

check: lint ## the quick part of `make test`, in less than 90 s
	@$(PYTEST) $(QUICK)

fmt: test-environment ## format the code and repair what ruff can repair
	@$(BIN)/ruff check --fix $(CODE)
	@$(BIN)/ruff format $(CODE)

bench: test-environment ## measure every figure, each with its control
	@for script in $(filter-out bench/_%,$(wildcard bench/*.py)); do \
	    echo "== $$script"; \
	    env -u PYTHONUNBUFFERED $(BIN)/python "$$script" || exit 1; \
	done

fuzz: test-environment ## a million mutated inputs for each codec, and a minute of attacks on a server
	@$(BIN)/python -m tests.fuzz.jsonstream_codec --runs 1000000
	@$(BIN)/python -m tests.fuzz.tryll_codec --runs 1000000
	@$(BIN)/python -m tests.fuzz.tryll_codec --json --runs 1000000
	@$(BIN)/python -m tests.fuzz.tryll_server --seconds 60

faults: test-environment ## ten minutes of faults in a cluster under load, and what they did to its promises
	@$(BIN)/python -m tests.chaos.cluster.run --sessions 300 --seconds 600

docs: ## build the documentation site into build/site, and check its links
	@$(BOOTSTRAP) --extras docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir build/site
	@echo "build/site/index.html"

wheel: test-environment ## build the wheel and the source distribution into dist
	@rm -rf dist
	@$(BIN)/python -m build --quiet --outdir dist .
	@ls dist/*

lock: ## choose the versions of all packages anew, for requirements-dev.lock
	@python=$$(sh scripts/find-python) && "$$python" scripts/lock.py

hooks: test-environment ## check before every commit, by pre-commit
	@$(BIN)/pre-commit install

release: ## make the commit and the tag of a version: make release VERSION=0.2.0
	@python=$$(sh scripts/find-python) && "$$python" scripts/release.py prepare "$(VERSION)"

clean: ## remove all that the verbs made, .venv included
	rm -rf .venv .venv.lock .cache .hypothesis .coverage .coverage.* build dist src/trunkline/_version.py
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

lint: test-environment
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/ruff format --quiet --check $(CODE)
	@$(BIN)/mypy $(CODE)
	@$(BIN)/lint-imports --no-cache >.venv/lint-imports.log 2>&1 || { cat .venv/lint-imports.log; exit 1; }

run-environment:
	@$(BOOTSTRAP) --extras up

test-environment:
	@$(BOOTSTRAP) --extras all --system
