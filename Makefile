# The one entry point: `make` lists what there is.

.DEFAULT_GOAL := help
.PHONY: help setup s3-server postgres-server postgres prometheus-server browser kafka-server schema-registry kafka demo cluster newcomer ready test test-inner test-fast test-spark fuzz test-long mutants gates lint types layers rooms reference gallery docs check \
        wheel try-wheel try-sdist sbom man words \
        format bench papers cliffs soak nemesis lock \
        clean clean-venv FORCE

BIN := .venv/bin
STAMP := .venv/.setup-done
CLASSES := .venv/spark-classes.jsa
PYTEST_ARGS ?=
CLUSTER_ARGS ?=
KAFKA_ARGS ?=
SOAK_ARGS ?=
NEMESIS_ARGS ?=
CORES ?=
ONLY ?=
TOPICS ?=
# Tests that share a JVM run in one worker, beside the others (tests/conftest.py).
WORKERS ?= -n auto --maxprocesses 4

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the locked versions, find or install Java (PYTHON=, LOCKED=no)

$(STAMP): requirements.lock pyproject.toml tools/setup.sh
	@PYTHON="$(PYTHON)" LOCKED="$(LOCKED)" tools/setup.sh

# With either of them tools/setup.sh sees to it that .venv is what was asked for.
ifneq ($(PYTHON)$(LOCKED),)
$(STAMP): FORCE
endif
FORCE:

s3-server: setup ## build the S3 server that tests/s3 runs against, once, into the user's cache
	@tools/s3_server.sh >/dev/null

postgres-server: ## install the Postgres server that tests/postgres runs against, where it is missing
	@tools/postgres.sh >/dev/null

browser: ## install the browser that tests/browser looks through, and fetch axe-core, where they are missing
	@tools/browser.sh >/dev/null

postgres: ## a Postgres server on this machine, until Ctrl-C (PORT=5433)
	@PORT="$(PORT)" tools/postgres.sh until-ctrl-c

prometheus-server: ## fetch the Prometheus server that tests/prometheus runs against, once, into the user's cache
	@tools/prometheus.sh >/dev/null

kafka-server: setup ## fetch the Kafka broker and the schema registry of tests/kafka, once, into the user's cache
	@tools/jars.sh kafka >/dev/null
	@tools/jars.sh schema-registry >/dev/null

schema-registry: kafka-server ## a schema registry on this machine until Ctrl-C (REGISTRY_ARGS='--port P')
	@$(BIN)/python tools/schema_registry.py $(REGISTRY_ARGS)

kafka: kafka-server ## a Kafka broker on this machine until Ctrl-C (TOPICS='rides:6 answers', KAFKA_ARGS='--port P')
	@$(BIN)/python tools/kafka.py $(KAFKA_ARGS) $(TOPICS)

demo: setup ## watch a continuous query over taxi rides; ends by itself
	$(BIN)/tidegate demo taxi

cluster: setup ## a Spark cluster on this machine, a master and three workers, until Ctrl-C (CLUSTER_ARGS=...)
	@$(BIN)/python tools/cluster.py $(CLUSTER_ARGS)

newcomer: ## make demo from a fresh clone of the commit, in an empty home
	@tools/newcomer.sh

ready: setup $(CLASSES) ## what processes of the tests would do again and again, done once: compile, load classes
	$(BIN)/python tools/compile_loops.py
	@said=$$($(BIN)/python -m pytest --collect-only --quiet --quiet) || { echo "$$said"; exit 1; }

# Mapped by the JVMs of the tests, if it is there: they start in half the time.
$(CLASSES): $(STAMP) tools/jvm.py
	@rm -f $@
	$(BIN)/python tools/jvm.py $@

test: setup s3-server postgres-server kafka-server prometheus-server browser ## all tests, with and without Spark, with the seeds of CI (PYTEST_ARGS=...)
	$(BIN)/python -m pytest $(WORKERS) $(PYTEST_ARGS)

test-inner: setup ## the tests of single parts: under a minute, for every change
	$(BIN)/python -m pytest -m "not whole" $(WORKERS) $(PYTEST_ARGS)

test-fast: setup s3-server postgres-server kafka-server prometheus-server browser ## the tests that need no JVM
	$(BIN)/python -m pytest -m "not spark" $(WORKERS) $(PYTEST_ARGS)

test-spark: setup s3-server ## the tests of Spark with another PySpark, in .venv-spark-VERSION (VERSION=4.0.5)
	@tools/test_spark.sh "$(VERSION)" $(PYTEST_ARGS)

# `make fuzz TIDEGATE_TEST_SEED=N` draws again what a run with seed N drew.
fuzz test-long: export TIDEGATE_TEST_SEED ?= new

fuzz: setup s3-server postgres-server kafka-server prometheus-server browser ## all tests with new seeds; the first line says which
	$(BIN)/python -m pytest $(WORKERS) $(PYTEST_ARGS)

test-long: setup s3-server postgres-server kafka-server prometheus-server browser ## all tests in long mode: new seeds, more examples, more kills
	TIDEGATE_TEST_MODE=long $(BIN)/python -m pytest --timeout 3600 $(WORKERS) $(PYTEST_ARGS)

mutants: setup ## make mistakes on purpose, one by one, and see that tests find them (WORDS=...)
	$(BIN)/python tools/mutate.py $(WORDS)

gates: setup ## break each check of CI in a copy, and see that it fails (WORDS=docs ...)
	$(BIN)/python tools/break_gates.py $(WORDS)

lint: setup ## ruff: rules and format; tests that assert nothing; doubled names, long functions, files and folders
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_tests.py
	$(BIN)/python tools/check_shape.py

types: setup ## mypy, strict for the package
	$(BIN)/mypy

layers: setup ## import-linter: who may import whom
	$(BIN)/lint-imports --no-logo

rooms: setup ## draw who imports whom into docs/
	$(BIN)/python tools/import_graph.py

reference: setup ## write docs/reference/ from the code, and draw docs/drawings/
	$(BIN)/python -m tools.reference
	$(BIN)/python -m tools.drawings

gallery: setup ## run the examples of the gallery and draw what they give, into docs/gallery/
	$(BIN)/python -m tools.gallery

docs: setup ## build the documentation into site/, strictly, and look at its spelling and its generated pages
	$(BIN)/codespell docs examples *.md
	$(BIN)/python tools/check_words.py
	$(BIN)/python tools/import_graph.py --check
	$(BIN)/python -m tools.reference --check
	$(BIN)/python -m tools.drawings --check
	$(BIN)/mkdocs build --strict

check: lint types layers docs test ## everything CI checks

wheel: setup ## the wheel and the source archive, into dist/
	@rm -f dist/tidegate-*
	$(BIN)/hatchling build --directory dist

# PYTHON is the one that the wheel is tried with: .venv, which builds it, stays as it is.
try-wheel: ## install the wheel into a fresh environment, and run it there (PYTHON=python3.12)
	@$(MAKE) --no-print-directory wheel PYTHON= LOCKED=
	@PYTHON="$(PYTHON)" tools/try_wheel.sh

try-sdist: setup s3-server postgres-server kafka-server prometheus-server browser ## all tests from the source archive, unpacked in a fresh folder (PYTEST_ARGS=...)
	@WORKERS="$(WORKERS)" tools/try_sdist.sh $(PYTEST_ARGS)

sbom: setup ## what the locked versions are, as CycloneDX, into dist/tidegate.cdx.json
	@mkdir -p dist
	$(BIN)/uv tool run --from cyclonedx-bom==7.5.0 cyclonedx-py requirements requirements.lock \
		--pyproject pyproject.toml --mc-type application --output-reproducible --no-validate --output-file dist/tidegate.cdx.json

words: setup ## write tools/words.txt, the words of the documentation, anew: read its diff
	$(BIN)/python tools/check_words.py --write

man: setup ## a man page for each command, from its --help, into dist/man/
	$(BIN)/python tools/man.py dist/man

format: setup ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## what a small batch costs, and windows beside Spark's own (benchmarks/ has more)
	$(BIN)/python benchmarks/batch_cost.py
	$(BIN)/python benchmarks/window_aggregate.py

papers: setup ## what docs/papers/ show beside the papers, run anew; goes on where it was stopped (CORES=16, ONLY=stretch-5)
	$(BIN)/python benchmarks/paper_runs.py --cores $(or $(CORES),2) --only $(ONLY)

cliffs: setup ## queries that must end in a bounded time, beside a reference (two minutes)
	$(BIN)/python benchmarks/cliffs.py

soak: kafka-server ## an hour of Kafka to Delta on three executors, with switches and a kill (SOAK_ARGS='--minutes 3')
	$(BIN)/python benchmarks/soak.py $(SOAK_ARGS)

nemesis: setup s3-server postgres-server kafka-server ## 20 minutes of faults on three executors, as root (NEMESIS_ARGS='alone --minutes 5 --seed 1')
	$(BIN)/python -m tests.nemesis $(NEMESIS_ARGS)

lock: ## write requirements.lock anew, with the newest versions allowed
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-header --upgrade --quiet --output-file requirements.lock

clean: ## remove what builds, tests and runs leave
	rm -rf build dist site spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache \
		.ruff_cache .import_linter_cache .hypothesis
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

clean-venv: ## remove the virtual environments
	rm -rf .venv .venv-spark-*
