.DEFAULT_GOAL := help
SHELL := /bin/bash

VENV ?= .venv
BIN := $(VENV)/bin
# The kind of catalog of the demo lake: duckdb, sqlite or postgres.
CATALOG ?= duckdb
# The folder of the demo lake and the executed notebook.
DEMO ?= $(if $(filter duckdb,$(CATALOG)),demo,demo-$(CATALOG))
TESTS ?= tests
# How many processes the tests are shared out among, each with a Spark of its own; 0 for this one only.
WORKERS ?= 2
# The sample that `make test` takes; today's if left out.
SEED ?=
# Random queries of `make proof`, each on both engines beside DuckDB.
QUERIES ?= 300
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup --no-loadscope-reorder
# Options of JupyterLab, e.g. LAB_ARGS="--no-browser --port 9000". It wants to be asked before it runs as root.
LAB_ARGS ?=
ALLOW_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
# The JupyterLab extension's sources.
LAB := extensions/jupyterlab-ducklake
# The sources of the interactive views, whose build is committed.
WIDGETS := extensions/widgets
# The first Python that is 3.11 or newer and can make virtual environments.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	if $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then command -v $$p; break; fi; done)

# The tests start hundreds of processes, which share what is compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo lab widgets test proof test-fast lint format bench footprint matrix docs screenshots clean

help: ## Print this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | awk -F'\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

demo: $(DEMO)/quickstart.ipynb ## Install, build the demo lake and execute the quickstart notebook
	@echo
	@echo "Demo lake              $(abspath $(DEMO))"
	@echo "Executed notebook      $(abspath $(DEMO))/quickstart.ipynb"
	@echo "Open in JupyterLab     make lab$(if $(filter duckdb,$(CATALOG)),, CATALOG=$(CATALOG))"

lab: demo $(VENV)/.labextension ## Open the quickstart notebook and the demo lake in JupyterLab; LAB_ARGS="…" are its options
	$(BIN)/jupyter lab $(DEMO)/quickstart.ipynb $(ALLOW_ROOT) $(LAB_ARGS)

widgets: $(VENV)/.dev ## Build the interactive views after a change of extensions/widgets; needs Node 20.19
	cd $(WIDGETS) && export PATH="$(abspath $(BIN)):$$PATH" && jlpm install --immutable && jlpm lint && jlpm build

test: lint ## Run the linters and a sample of the tests; TESTS=tests/unit runs a part, SEED=7 takes another sample
	$(PYTEST) $(if $(SEED),--seed $(SEED)) $(TESTS)

proof: lint ## Run the linters and all tests, on all kinds of catalogs; three hours on two cores, and one that was cut goes on
	QUERIES=$(QUERIES) $(PYTEST) --everything --go-on .proof $(TESTS)

test-fast: $(VENV)/.dev ## Run the quick unit tests on one kind of catalog, in less than two minutes
	$(PYTEST) --quiet --catalog duckdb -m "not slow" tests/unit

lint: $(VENV)/.dev ## Run ruff, mypy, import-linter and the linter of prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check ducklake_lab benchmarks tests
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.prose

format: $(VENV)/.dev ## Format the code and sort its imports
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format ducklake_lab benchmarks tests

bench: $(VENV)/.dev ## Compare speed with Spark and with the reference, as ratios
	$(BIN)/python -m benchmarks

footprint: $(VENV)/.dev ## Print what an installation weighs and what importing it takes of the CPU
	$(BIN)/python -m benchmarks.footprint

matrix: $(VENV)/.dev ## Try the wheel with the oldest and the newest of what it needs, in fresh environments
	$(BIN)/python -m tests.matrix $(ENVIRONMENTS)

docs: $(VENV)/.dev ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Documentation          $(abspath site)/index.html"

screenshots: $(VENV)/.dev $(VENV)/.labextension $(DEMO)/quickstart.ipynb ## Take the pictures of the documentation; needs Chromium
	$(BIN)/python docs/make_screenshots.py
	$(BIN)/python docs/make_gallery.py
	$(BIN)/python docs/make_animation.py

clean: ## Remove the environment, the demo lake and all caches
	rm -rf $(VENV) .proof demo demo-* dist site $(LAB)/node_modules $(LAB)/.yarn $(LAB)/lib $(LAB)/labextension $(LAB)/*.tsbuildinfo $(WIDGETS)/node_modules $(WIDGETS)/.yarn benchmarks/results .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp file is newer than what it was made from, so each step runs once.
$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found; name one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# an editable installation has no use for the JupyterLab extension, nor for what builds it
$(VENV)/.demo: pyproject.toml | $(VENV)/.created
	DUCKLAKE_LAB_LABEXTENSION=0 $(BIN)/python -m pip install --editable '.[demo,jdk,postgres]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.created
	DUCKLAKE_LAB_LABEXTENSION=0 $(BIN)/python -m pip install --editable '.[dev,jdk]'
	@if command -v javac > /dev/null; then $(BIN)/python extensions/spark-catalog/build.py; \
	else echo "No javac is on PATH: dl.spark_catalog needs the jar that it makes."; fi
	@touch $@

# The extension as the wheel has it, linked, so that JupyterLab shows what was built last.
$(VENV)/.labextension: hatch_build.py $(shell find $(LAB) -type f -not -path '*/node_modules/*' -not -path '*/.yarn/*' \
		-not -path '*/lib/*' -not -path '*/labextension/*') | $(VENV)/.demo
	@echo "Building the JupyterLab extension"
	@if $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(VENV)/wheel .; then \
		mkdir -p $(VENV)/share/jupyter/labextensions && \
		ln -sfn $(abspath $(LAB)/labextension) $(VENV)/share/jupyter/labextensions/jupyterlab-ducklake && touch $@; \
	else echo "JupyterLab opens without the DuckLake sidebar, which could not be built; the reason is above."; fi

$(DEMO)/quickstart.ipynb: notebooks/quickstart.ipynb $(VENV)/.demo
	$(BIN)/python -m ducklake_lab.demo --catalog $(CATALOG) --path $(DEMO) --notebook $<
