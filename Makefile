# Everything sets itself up in .venv: `make demo`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-long test-shuffled docs lint format clean

demo: $(VENV)/.core
	$(BIN)/localsmooth demo --out runs/demo

# Two at a time, a file in one of them; in the order of tests/order.py.
WORKERS := -n 2 --dist loadfile --no-loadscope-reorder

test: $(VENV)/.dev lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(WORKERS)

test-long: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(WORKERS) -m "long or not long" --timeout 3600

# Files, and tests in them, in another order each time; SEED=… repeats one.
SEED ?= $(shell date +%s)
test-shuffled: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(WORKERS) --shuffle $(SEED)

# The documentation as a site in build/site; any warning fails. Material's banner about its successor is left out.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Without ruff's cache, which does not know that a module which a file imports is there no more.
lint: $(VENV)/.dev
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/ruff check --no-cache .
	$(BIN)/pyright

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e ".[dev,onnx,huggingface,examples,graph,distributed]"
	touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e ".[docs]"
	touch $@ $(VENV)/.core
