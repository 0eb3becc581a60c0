# `make help` lists the targets. Requirements: Python 3.10 or later, and make. `make test-all` skips tests that open pages
# if Chromium is not installed (Debian: apt-get install chromium).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help install demo serve test test-all check bench docs dist format clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

# Two stamps, because the demo needs fewer packages than the tests.
$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

install: $(VENV)/.demo  ## create a virtual environment with homing

demo: install  ## run homing on a few real photos: prints a table, writes demo/report.html
	$(BIN)/homing demo --out demo

$(VENV)/.serve: pyproject.toml $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[serve]'
	@touch $@

demo/demo.homing:
	$(MAKE) demo

serve: $(VENV)/.serve demo/demo.homing  ## serve a page and an API for the demo's photos at http://127.0.0.1:8321
	$(BIN)/homing serve demo/demo.homing

# One thread per worker process, because the workers share the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

test: $(VENV)/.dev  ## run the fast tests: a few minutes on two cores
	$(PYTEST) -m 'not slow and not browser and not cluster'

test-all: $(VENV)/.dev  ## run all tests: also kills, fuzzing, Ray, pages in Chromium, and other slow ones
	$(PYTEST)

check: $(VENV)/.dev  ## check formatting, lint, types, and imports between packages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_packages.py

bench: $(VENV)/.dev  ## measure memory, startup time, the networks, and how cost grows
	$(BIN)/python benchmarks/footprint.py
	$(BIN)/python benchmarks/forward.py
	$(BIN)/python benchmarks/growth.py --quick

docs: $(VENV)/.dev  ## build the site in site/ from docs/ and the docstrings
	$(BIN)/python tools/cli_reference.py
	$(BIN)/python -m sphinx -W --keep-going -q docs site

dist: $(VENV)/.dev  ## build a wheel and an sdist in dist/, and try the wheel in a new environment
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python tools/try_wheel.py dist/*.whl

format: $(VENV)/.dev  ## format the code and fix lint errors
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove the virtual environment and generated files
	rm -rf $(VENV) demo dist site
