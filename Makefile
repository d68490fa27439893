# The two commands a newcomer needs: `make demo` and `make test`. Each makes its own .venv when it is missing.
PYTHON ?= python3
BIN := .venv/bin

# Real data for tests and experiments, where it lies beside the project; elsewhere tests that need it skip.
ifneq ($(wildcard ../shared/data/.),)
export TAMEDIT_DATA ?= $(abspath ../shared/data)
endif

.PHONY: setup demo test test-adapters lint bench docs site tables clean

setup: .venv/ready

.venv/ready: pyproject.toml paper/pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]" --editable ./paper
	@touch $@

demo: .venv/ready
	$(BIN)/tamedit demo --out runs/demo

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n 2
	$(MAKE) test-adapters

# GluonTS and sktime do not know pandas 3 yet. What they need besides .venv lies in a layer over it, so that both are tested.
.venv/adapters/ready: .venv/ready constraints-adapters.txt
	rm -rf .venv/adapters
	$(BIN)/pip install --quiet --no-deps --target .venv/adapters --requirement constraints-adapters.txt
	PYTHONPATH=.venv/adapters $(BIN)/pip check
	@touch $@

# PyPOTS asks for an older huggingface_hub than ours, so it has a layer of its own. It writes into its user's home when it is imported.
.venv/pypots/ready: .venv/ready constraints-pypots.txt
	rm -rf .venv/pypots
	$(BIN)/pip install --quiet --no-deps --target .venv/pypots --requirement constraints-pypots.txt
	mkdir .venv/pypots/home
	@touch $@

test-adapters: .venv/adapters/ready .venv/pypots/ready
	PYTHONPATH=.venv/adapters $(BIN)/pytest -n 2 tests/adapters/test_gluonts.py tests/adapters/test_sktime.py tests/adapters/test_guide.py
	HOME=$(abspath .venv/pypots/home) PYTHONPATH=.venv/pypots TAMEDIT_NEEDS_PYPOTS=1 $(BIN)/pytest tests/adapters/test_pypots.py

# The command line's reference; a test checks that it is current.
docs: .venv/ready
	$(BIN)/python -m typer tamedit.cli.main utils docs --name tamedit --output docs/cli.md

# The documentation as a site in site/, with search and the Python reference; `python -m http.server --directory site` shows it.
site: .venv/ready
	$(BIN)/mkdocs build --strict

# Pages of results from what lies under paper/results/; a test checks that they are current.
tables: .venv/ready
	$(BIN)/tamedit reproduce all --tables --out paper/docs
	$(BIN)/tamedit reproduce all --tables --source simulated --out paper/docs
	$(BIN)/tamedit reproduce curve --tables --out paper/docs
	$(BIN)/tamedit reproduce synthetic --tables --out paper/docs

bench: .venv/ready
	$(BIN)/python benchmarks/preparation.py

clean:
	rm -rf .venv runs build dist site paper/build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
