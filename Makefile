# `make help` lists what there is. Nothing needs to be installed but Python 3.10 or later and make; without
# Chromium (Debian: apt-get install chromium) `make test` skips what it would open in it: the page of the service.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help install demo serve test test-all check bench docs dist format clean

help:  ## list what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

# Two stamps: a demo needs less than the tests do.
$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

install: $(VENV)/.demo  ## a virtual environment with homing in it

demo: install  ## the whole way on a handful of real photos: table on the screen, pictures in demo/report.html
	$(BIN)/homing demo --out demo

$(VENV)/.serve: pyproject.toml $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[serve]'
	@touch $@

demo/demo.homing:
	$(MAKE) demo

serve: $(VENV)/.serve demo/demo.homing  ## a page and an API over the demo's photos, at http://127.0.0.1:8321
	$(BIN)/homing serve demo/demo.homing

# One thread each: workers that share the cores would wait for one another. A file goes to one of them: what its tests share
# is made once. Files come in their order: sorted by how many tests they have, the longest would end it.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

test: $(VENV)/.dev  ## the tests of every day: minutes on two cores
	$(PYTEST) -m 'not slow and not browser and not cluster'

test-all: $(VENV)/.dev  ## all tests: crashes, damaged files, Ray, the page in Chromium, and whatever else takes long
	$(PYTEST)

check: $(VENV)/.dev  ## formatting, lint, types, and that lower packages do not import upper ones
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_packages.py

bench: $(VENV)/.dev  ## memory of adding 1,000 photos, time to answer --help, time of the networks, how cost grows
	$(BIN)/python benchmarks/footprint.py
	$(BIN)/python benchmarks/forward.py
	$(BIN)/python benchmarks/growth.py --quick

docs: $(VENV)/.dev  ## the site in site/, from docs/ and the docstrings
	$(BIN)/python tools/cli_reference.py
	$(BIN)/python -m sphinx -W --keep-going -q docs site

dist: $(VENV)/.dev  ## a wheel and an sdist in dist/, and the wheel tried in an environment of its own
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python tools/try_wheel.py dist/*.whl

format: $(VENV)/.dev  ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove the virtual environment and what the demo wrote
	rm -rf $(VENV) demo dist site
