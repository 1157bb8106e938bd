# `make check` judges the shipped rules; `make test` runs the whole suite; `make lint` reads the
# code. Each makes .venv and installs into it what it needs, once; nothing else is to be done.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --constraint constraints.txt
JOBS   ?= 2

# One BLAS thread per process: results then do not depend on the number of cores.
export OMP_NUM_THREADS      := 1
export OPENBLAS_NUM_THREADS := 1

.NOTPARALLEL:
.PHONY: check test lint coverage golden clean

check: $(VENV)/.installed
	$(BIN)/rulecheck check rules/

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(JOBS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: $(VENV)/.installed-test $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(JOBS) --cov --cov-report=term

golden: $(VENV)/.installed-test
	$(BIN)/python -m pytest tests/golden --update-golden

clean:
	rm -rf $(VENV) build dist

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14) and "rulecheck needs Python 3.11, 3.12 or 3.13 (set PYTHON=…)")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[test,torch]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.installed
