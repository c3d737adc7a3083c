# One vocabulary for people and CI. `make help` lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PYTHON

VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev
JARS := jars/.resolved
BROKER := jars/broker/.resolved
LINEAGE := jars/lineage/.resolved
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help install jars lineage demo demo-kafka example data up down test test-fast test-slow check format schema lock clean

help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The development set holds the runtime set, so having it is enough.
$(RUNTIME): requirements.txt pyproject.toml
	@[ -e $(DEV) ] && [ $(DEV) -nt requirements.txt ] && [ $(DEV) -nt pyproject.toml ] || scripts/install requirements.txt
	@touch $@

$(DEV): requirements-dev.txt pyproject.toml
	@scripts/install requirements-dev.txt
	@touch $@

$(JARS): jobs/ivy.xml jobs/jars.default.sha256 | $(RUNTIME)
	@scripts/jars default
	@touch $@

$(BROKER): jobs/ivy.xml jobs/jars.broker.sha256 | $(RUNTIME)
	@scripts/jars broker
	@touch $@

$(LINEAGE): jobs/ivy.xml jobs/jars.lineage.sha256 | $(RUNTIME)
	@scripts/jars lineage
	@touch $@

install: $(RUNTIME) ## install Python packages into .venv

jars: $(JARS) ## resolve the JARs that Spark needs

lineage: $(LINEAGE) ## resolve the JAR by which Spark tells of its work, see docs/lineage.md

demo: $(RUNTIME) $(JARS) ## run files -> bronze -> silver -> gold through a real Airflow
	@python -m demo.run

demo-kafka: $(RUNTIME) $(JARS) $(BROKER) ## the same from Kafka, with a broker of its own
	@python -m demo.stream

example: $(RUNTIME) $(JARS) ## run one of docs/examples.md: make example NAME=word_count
	@python -m demo.example $(NAME)

data: $(RUNTIME) ## land more files for the demo
	@python -m demo.data

up: $(RUNTIME) $(JARS) ## start Airflow with its UI and leave it running
	@python -m demo.up

down: ## stop what `make up` started
	@[ ! -x $(BIN)/python ] || $(BIN)/python -m demo.down

test: test-fast $(JARS) $(BROKER) $(LINEAGE) ## run the tests, but for those that take minutes
	@scripts/browser
	@pytest -m "(spark or airflow or kafka) and not slow" $(ARGS)

test-slow: $(DEV) $(JARS) $(BROKER) $(LINEAGE) ## run those too: every sink and operator killed, a million records, the demo of Kafka
	@pytest -m slow $(ARGS)

test-fast: $(DEV) ## run the tests that need no JVM, no Airflow and no Kafka
	@pytest -n 2 -m "not spark and not airflow and not kafka" $(ARGS)

check: $(DEV) ## formatter, linter, types and the layering rule
	ruff format --check .
	ruff check .
	mypy

format: $(DEV) ## format the code
	ruff format .
	ruff check --fix .

schema: $(RUNTIME) ## write pipelines/schema.json
	@tidegate schema --output pipelines/schema.json

lock: $(DEV) ## pin all packages and JARs anew
	uv pip compile --quiet --generate-hashes --python-version 3.11 --no-header --upgrade --all-extras pyproject.toml -o requirements-dev.txt
	uv pip compile --quiet --generate-hashes --python-version 3.11 --no-header --upgrade -c requirements-dev.txt pyproject.toml -o requirements.txt
	scripts/jars default --lock
	scripts/jars broker --lock
	scripts/jars lineage --lock

clean: down ## remove all that make created
	rm -rf $(VENV) jars var .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
