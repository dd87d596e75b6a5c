# Every command of the project. `make` alone lists them.

DATA ?= /var/lib/podbus
MANIFESTS ?= /etc/podbus/manifests
PORT ?= 10250
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
# More tests than one at a time: pure ones on every core; those on Docker share the engine, two keep it busy.
JOBS ?= auto
DOCKER_JOBS ?= 2
PYTEST_ARGS ?=

export DATA MANIFESTS PORT PODS PYTHON
PYTEST := $(BIN)/python -m pytest --durations=15 --durations-min=0.1 $(PYTEST_ARGS)
LOCK := $(BIN)/uv pip compile -q --no-emit-index-url --generate-hashes --universal --python-version 3.11

.DEFAULT_GOAL := help
.PHONY: help setup up down test test-unit test-cluster test-long check format bench docs lock clean

help: ## list the commands
	@printf 'podbus: make COMMAND [NAME=VALUE]\n\n'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)$$/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

setup: ## install what is missing, make .venv, start Docker if none answers, build the images
	@deploy/setup.sh node

up: setup ## start the node with an example pod [DATA= MANIFESTS= PORT=]
	@deploy/node.sh up

down: ## end the agent; the pods stay, with PODS=1 they end too [DATA= PODS=1]
	@deploy/node.sh down

test: ## set up what is missing, then run all tests but the long ones
	@deploy/setup.sh tests
	@deploy/run-tests.sh

test-unit: ## the tests that need neither Docker nor a whole node
	@deploy/setup.sh python
	$(PYTEST) -n $(JOBS) -m 'not docker and not e2e and not serial and not long and not cluster'

test-cluster: ## the tests that join a real cluster, whose control plane is built first (once, minutes)
	@deploy/setup.sh cluster
	$(PYTEST) -n 0 -m 'cluster and not long'

test-long: ## the soak tests
	@deploy/setup.sh cluster
	$(PYTEST) -n 0 -m long

check: ## format, lint, types, layers, dependencies, generated files
	@deploy/setup.sh python
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy shared services cli tests bench tools
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/python tools/check_generated.py
	@! command -v shellcheck >/dev/null || shellcheck -x .ci/run deploy/*.sh deploy/*/*.sh

format: ## put the code into the project's form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: ## measure speed and size on this machine (minutes) [BENCH_ARGS=]
	@deploy/setup.sh node
	$(BIN)/python -m bench $(BENCH_ARGS)

docs: ## write the generated documents anew
	@deploy/setup.sh python
	$(BIN)/python tools/gen_docs.py

lock: ## write the lock files anew from pyproject.toml [LOCK_ARGS=--upgrade]
	$(LOCK) $(LOCK_ARGS) --all-extras pyproject.toml -o requirements-dev.lock
	$(LOCK) $(LOCK_ARGS) --extra source --extra podworker --extra api pyproject.toml -o requirements.lock

clean: ## remove what was built in this tree, .venv too; pods, data and images stay
	rm -rf .venv build dist *.egg-info deploy/compose/build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
