# Two commands on a fresh machine: `make demo` and `make test`. Everything else builds on the same .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test slow deep cheats check format bench mutate coverage clean
.DEFAULT_GOAL := help

help:            ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP)   ## watch a small repository being built: work goes back until it is verified; KEEP=1 keeps its folder, SERVE=1 shows its page
	$(BIN)/python -m backedge.demo $(if $(KEEP),--keep) $(if $(SERVE),--serve)

test: $(STAMP)   ## the tests; a few minutes
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow"

slow: $(STAMP)   ## the slow tests: whole programs, kills, every page of the docs, the agent CLIs that are installed
	$(BIN)/python -m pytest -n auto --dist loadgroup -m slow --durations=20

deep: $(STAMP)   ## the random tests with new examples, and twenty times as many of the properties (half an hour)
	BACKEDGE_HYPOTHESIS=deep $(BIN)/python -m pytest -n auto $$(grep -rl --include='test_*.py' hypothesis tests)

cheats: $(STAMP) ## try to reach verified dishonestly, and do honest work; ARGS="git --sandbox bwrap" chooses
	$(BIN)/python -m tests.cheats $(ARGS)

check: $(STAMP)  ## format, lint, types, import rule
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(STAMP) ## auto-fix format and lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

coverage: $(STAMP) ## branch coverage of the core, 100 % or it fails
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -n auto --dist loadgroup tests/core tests/histories
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --fail-under=100

mutate: $(STAMP) ## change the core in small ways and list the changes that no test catches
	$(BIN)/python tools/mutate.py core/breaches.py core/feedback/routing.py core/decide.py core/feedback/loop.py core/findings/ledger.py

bench: $(STAMP)  ## compare backedge with its peers and a bare journal
	$(BIN)/python -m bench

clean:           ## remove what can be generated again
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage coverage.json mutants
