# Every target installs what it needs into .venv and nothing outside of it.
PYTHON ?= python3
BIN := .venv/bin
RELEASE := .venv-release
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo test test-all check format bench docs site release-check clean

demo: .venv/core
	$(BIN)/undermargin demo

test: .venv/test
	$(BIN)/python -m pytest -m "not slow" -n auto

# all tests, with the coverage of the package and its floor (pyproject.toml)
test-all: .venv/test
	$(BIN)/python -m pytest -n auto --cov --cov-report=term:skip-covered

check: .venv/check
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m mkdocs build --strict

format: .venv/check
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: .venv/bench
	$(BIN)/python -m bench

# rewrite the generated pages
docs: .venv/docs
	$(BIN)/python docs/generate.py

# build the documentation in site/; a broken link, anchor or reference is an error
site: .venv/site docs
	$(BIN)/python -m mkdocs build --strict

# build the package, install the wheel without extras into an empty environment, run the demo there
release-check: .venv/release
	rm -rf dist $(RELEASE)
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet -c constraints.txt dist/undermargin-*.whl
	cd $(RELEASE) && bin/undermargin --version && bin/undermargin demo --out demo
	cd $(RELEASE) && bin/undermargin report demo && bin/undermargin clean demo --dry-run

clean:
	rm -rf .venv $(RELEASE) dist site scans .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade -c constraints.txt pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

.venv/test .venv/bench .venv/check .venv/docs .venv/site .venv/release: .venv/core
	$(BIN)/python -m pip install --quiet -c constraints.txt --group $(@F)
	touch $@

.venv/bench .venv/check: .venv/test
.venv/check: .venv/site
