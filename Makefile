# Two commands do everything on a fresh machine with Python 3.11+ and make:
#   make demo   installs tokctl into .venv and runs the whole pipeline on the bundled corpus
#   make test   installs the development extras too and runs the whole suite

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= demo-out

.PHONY: demo test lint format types layers check warm conformance bench clean

demo: $(VENV)/.installed
	$(BIN)/tokctl cache warm
	$(BIN)/tokctl run configs/demo.toml -o $(OUT)
	@echo "report:     $(OUT)/report/comparison.md"
	@echo "tokenizers: $(OUT)/tokenizers/2000  $(OUT)/tokenizers/8000"
	@echo "shards:     $(OUT)/split/train  $(OUT)/split/validation  $(OUT)/split/test"

test: $(VENV)/.developer warm
	$(BIN)/python -m pytest

lint: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.developer
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.developer
	$(BIN)/mypy

layers: $(VENV)/.developer
	$(BIN)/lint-imports

check: lint types layers

warm: $(VENV)/.installed
	$(BIN)/tokctl cache warm

# The full agreement runs against the real libraries; CI runs a seeded sample of each.
conformance: $(VENV)/.developer warm
	$(BIN)/python tests/interop/conformance.py

# The full measurements against the named peers, one JSON line a result.
bench: $(VENV)/.peers warm
	$(BIN)/python tests/benchmarks/run_all.py

clean:
	rm -rf $(VENV) $(OUT) build *.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "tokctl needs Python 3.11 or newer; hint: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[interop]'
	touch $@

$(VENV)/.developer: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/.peers: $(VENV)/.developer
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,peers]'
	touch $@
