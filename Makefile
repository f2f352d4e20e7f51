# Every target sets up what it needs in .venv; nothing is installed outside of it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all check format bench docs clean

demo: .venv/core
	$(BIN)/undermargin demo

test: .venv/test
	$(BIN)/python -m pytest -m "not slow" -n auto

test-all: .venv/test
	$(BIN)/python -m pytest -n auto

check: .venv/check
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check

format: .venv/check
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: .venv/bench
	$(BIN)/python -m bench

docs: .venv/core
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv scans .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade -c constraints.txt pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

.venv/test: .venv/core
	$(BIN)/python -m pip install --quiet -c constraints.txt --group test
	touch $@

.venv/bench: .venv/test
	$(BIN)/python -m pip install --quiet -c constraints.txt --group bench
	touch $@

.venv/check: .venv/test
	$(BIN)/python -m pip install --quiet -c constraints.txt --group check
	touch $@
