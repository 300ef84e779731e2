# The one door: `make help` lists what is behind it.

PYTHON ?= python3
VENV   ?= .venv

bin     := $(VENV)/bin
ready   := $(VENV)/.ready
engines := $(VENV)/.engines

# One process for each core, up to eight; whoever has nothing left takes from the others.
parallel := -n auto --maxprocesses 8 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-quick test-engines fuzz check format bench bench-growth figures clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

setup: $(ready) ## Make the virtual environment and install robustq with its developers' tools

demo: $(ready) ## Show the whole story on data that ships with robustq, in a minute
	$(bin)/robustq demo

test: $(ready) ## Run all tests (doctests, examples, documentation), and tell what they cover
	$(bin)/python -m tests.compiling
	$(bin)/python -m pytest $(parallel) -m 'not workers' --cov $(ARGS)

test-quick: $(ready) ## Run the tests that are not slow, in a minute
	$(bin)/python -m pytest $(parallel) -m 'not slow' --durations=5 --durations-min=1 $(ARGS)

# Two at a time: most of them wait for processes of their own. Those that share a cluster stay together.
test-engines: $(engines) ## Run the tests of Spark, Dask and what else is outside, with all of it installed
	$(bin)/python -m pytest tests/engines -n 2 --dist loadgroup $(ARGS)

fuzz: $(ready) ## Attack with ever new seeds (ARGS="--seconds 600"; ARGS="--guided --attack files" with atheris)
	$(bin)/python -m tests.hostile $(ARGS)

check: $(ready) ## Lint, check the format, the types and the layers
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy
	$(bin)/lint-imports --no-logo

format: $(ready) ## Format the code and mend what the linter can mend
	$(bin)/ruff format .
	$(bin)/ruff check --fix .

bench: $(ready) ## Measure, and compare with the promised limits (ARGS="forest --compare old.json")
	$(bin)/python -m benchmarks $(ARGS)

bench-growth: $(ready) ## Measure how cost grows with rows, features, classes, values, trees and depth
	$(bin)/python -m benchmarks.growth $(ARGS)

figures: $(ready) ## Draw the pictures of docs/ anew
	$(bin)/python docs/draw_balls.py
	$(bin)/python docs/draw_curves.py
	$(bin)/python docs/draw_demo.py
	$(bin)/python docs/draw_explore.py
	$(bin)/python docs/draw_parts.py

clean: ## Remove the environment, caches and build products
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are newer than pyproject.toml when there is nothing to install.
$(ready): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "robustq needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@if command -v uv >/dev/null 2>&1; then \
	  set -x && uv venv --quiet --allow-existing --python "$$(command -v $(PYTHON))" $(VENV) && \
	  uv pip install --quiet --python $(bin)/python --editable . --group dev; \
	else \
	  set -x && $(PYTHON) -m venv $(VENV) && \
	  $(bin)/python -m pip install --quiet --upgrade pip && \
	  $(bin)/python -m pip install --quiet --editable . --group dev; \
	fi
	@touch $@

$(engines): $(ready)
	@if command -v uv >/dev/null 2>&1; then \
	  set -x && uv pip install --quiet --python $(bin)/python --group engines; \
	else \
	  set -x && $(bin)/python -m pip install --quiet --group engines; \
	fi
	@touch $@
