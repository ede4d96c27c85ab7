# Everything a contributor or a CI machine runs. Needs GNU make, a POSIX shell and Python 3.11 or newer; the rest is
# fetched into .venv by `make setup`. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done

# Two workers because the reference machine has two cores; an idle one takes over tests that wait for the other.
PYTEST ?= $(BIN)/python -m pytest
PYTEST_WORKERS ?= 2
PYTEST_ARGS ?=

.PHONY: help setup servers demo demo-workflow test test-fault check format bench bench-quick bench-docs bench-api bench-review bench-hostile models lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/' | expand -t 22

setup: $(STAMP) ## create .venv with every dependency, exactly as locked

$(STAMP): requirements.lock pyproject.toml scripts/setup scripts/uv
	@PYTHON="$(PYTHON)" VENV="$(VENV)" scripts/setup
	@touch $@

servers: $(STAMP) ## make sure PostgreSQL and Redis can be started by the tests
	@VENV="$(VENV)" scripts/test-servers

demo: $(STAMP) ## turn sample documents into data, and hold every value against the truth
	@$(BIN)/python -m docmill.demo

demo-workflow: $(STAMP) ## run a sample workflow from beginning to end, and kill a worker on the way
	@$(BIN)/python -m docmill.demo workflow

test: $(STAMP) servers ## run every test against real servers
	$(PYTEST) -n $(PYTEST_WORKERS) --dist worksteal $(PYTEST_ARGS)

test-fault: $(STAMP) servers ## run the tests that have them at their full volumes: faults, and claims at once (long)
	DOCMILL_FAULT_VOLUME=full $(PYTEST) tests/fault tests/contract/test_api_once.py $(PYTEST_ARGS)

check: $(STAMP) ## format, lint, strict types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(STAMP) ## rewrite the code in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) servers ## measure Docmill and its peers on the same servers
	$(BIN)/python -m bench full

bench-quick: $(STAMP) servers ## a short measurement that ends with one line of JSON
	@$(BIN)/python -m bench quick

bench-docs: $(STAMP) ## measure how fast documents are read, beside the libraries underneath
	@$(BIN)/python -m bench.documents

bench-review: $(STAMP) servers ## measure the queue of review at 100,000 open items on PostgreSQL
	@$(BIN)/python -m bench.review

bench-api: $(STAMP) servers ## measure the API at 100,000 documents on PostgreSQL: looks, claims, uploads
	@$(BIN)/python -m bench.api

bench-hostile: $(STAMP) ## read the hostile files of the labelled data, and damaged copies of the others
	@$(BIN)/python -m bench.hostile

models: $(STAMP) ## fit every model that ships anew, on the labelled documents in DOCMILL_DATA (long)
	$(BIN)/python scripts/train_local.py --write --readings build/readings
	$(BIN)/python scripts/train_invoices.py --write --readings build/readings
	$(BIN)/python scripts/train_types.py --write --readings build/readings
	$(BIN)/python scripts/train_confidence.py --write --readings build/readings

lock: ## resolve the dependencies anew into requirements.lock
	@[ -x $(BIN)/uv ] || PYTHON="$(PYTHON)" VENV="$(VENV)" scripts/setup
	VENV="$(VENV)" scripts/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --no-annotate \
		--no-emit-index-url --all-extras --group dev pyproject.toml --output-file requirements.lock > /dev/null

clean: ## remove everything that was generated
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2> /dev/null || true
