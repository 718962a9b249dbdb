# `make demo` and `make test` need no set-up before them. CI runs `make check`; `make nightly` runs what takes longer.
#
# The set-up creates .venv, installs this folder into it (editable) and, if that succeeded, writes a stamp file. Later runs
# find the stamp and start at once. A changed pyproject.toml is newer than the stamp, so it is installed again.

.DEFAULT_GOAL := help
.PHONY: help demo test quick check nightly long lint types layers core-alone tests goldens prove model kernels kernels-oldest dist docs pictures clean mutants differential lock

BUDGET := 10m
# The folder with the real engines, and options of `make differential`.
PEERS :=
ARGS :=
ROOM := core
VENV := .venv
PY := $(VENV)/bin/python
# A file's tests run in one process: what a fixture of the file has computed is there for all of them.
PYTEST := $(PY) -m pytest -n auto --dist loadfile
DEV := $(VENV)/.installed-dev
OLDEST_TRITON := $(VENV)/triton-3.5.0
# LOCKED=1 sets .venv up with the exact packages of requirements/dev.txt (demo: workshop.txt); pip refuses a file whose hash
# is not recorded there.
LOCKED :=
# uv does not read pip's setting for a folder of wheels.
LOCK = $(VENV)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock" --override requirements/torch.txt $(addprefix --find-links ,$(PIP_FIND_LINKS)) pyproject.toml
# The packages of the demo are among those of development.
ENGINE := $(if $(wildcard $(DEV)),$(DEV),$(VENV)/.installed-engine)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile | expand -t 20

demo: $(ENGINE) ## SmolLM2 answers with a prefix cache and without (tiny, if SmolLM2 cannot be downloaded)
	@$(PY) -m minicache model pull smollm2 || echo "Going on without SmolLM2, with the small built-in model."
	@$(PY) -m minicache demo

test: $(DEV) ## every law and every feature, in minutes
	@$(PY) -m minicache model pull smollm2 || echo "Tests that need SmolLM2 will be skipped."
	$(PYTEST)

quick: $(DEV) ## one room's laws in half a minute: make quick ROOM=core (or engine, sim, text, tui, ...)
	HYPOTHESIS_PROFILE=quick $(PYTEST) -q -m "not nightly and not slow" $(wildcard tests/$(ROOM) tests/properties/$(ROOM))

check: layers lint types core-alone model tests ## what CI runs

NIGHTLY := long kernels kernels-oldest mutants proof

nightly: $(DEV) ## everything that takes too long for CI, in about 25 minutes; every stage runs, even after one has failed
	$(MAKE) --keep-going $(NIGHTLY)

long: model # every test, the long ones too, with more examples of each law
	MINICACHE_REQUIRE_MODEL=1 HYPOTHESIS_PROFILE=nightly $(PYTEST) -m "nightly or not nightly"

proof: $(DEV) # `make prove` for two minutes
	$(PY) -m tests.prove --budget 2m

layers: $(DEV) ## imports point one way
	$(VENV)/bin/lint-imports

lint: $(DEV) ## ruff: rules and format
	$(PY) -m ruff check
	$(PY) -m ruff format --check

types: $(DEV) ## mypy, strict on minicache/core
	$(PY) -m mypy

core-alone: $(DEV) ## the core runs with the standard library alone
	$(PY) -I -S tests/core_without_packages.py

model: $(DEV) ## download SmolLM2 into the store
	$(PY) -m minicache model pull smollm2

tests: $(DEV) # with SmolLM2 in the store no test that needs it may be skipped
	MINICACHE_REQUIRE_MODEL=1 $(PYTEST)

kernels: $(DEV) ## the Triton kernels, compiled for four GPUs, without a GPU
	$(PY) -m minicache kernels check

kernels-oldest: $(OLDEST_TRITON)/.installed ## the tests of the kernels with the oldest supported Triton
	PYTHONPATH=$(OLDEST_TRITON) $(PYTEST) tests/kernels

goldens: $(DEV) ## accept the logs of the scenarios and the screens as they are now; git shows the changes
	$(PY) -m tests.sim.goldens
	$(PY) -m tests.tui.snapshots

prove: $(DEV) ## search for cases that break a law, for a time: make prove BUDGET=10m (or 90s, 1h)
	$(PY) -m tests.prove --budget $(BUDGET)

mutants: $(DEV) ## named wrong versions of the code; a law must fail for each
	$(PY) -m tests.mutants

differential: ## random histories against the real vLLM and SGLang: make differential PEERS=folder (see CONTRIBUTING.md)
	@test -n "$(PEERS)" || { echo "Name the folder that 'python -m tests.differential.set_up FOLDER' has filled: make differential PEERS=FOLDER" >&2; exit 2; }
	PEERS=$(abspath $(PEERS)) $(PEERS)/venv/bin/python -m tests.differential $(ARGS)

pictures: $(DEV) ## draw the site's pictures of the terminal UI into docs/pictures/
	mkdir -p docs/pictures
	$(PY) -m minicache tui timestamp-top --event 26 --svg docs/pictures/timestamp-top.svg
	$(PY) -m minicache tui timestamp-top --event 26 --size 80x24 --svg docs/pictures/timestamp-top-small.svg
	$(PY) -m minicache tui radix-split-and-prune --event 40 --theme light --svg docs/pictures/radix.svg
	$(PY) -m minicache tui two-equal-prompts --cache both --event 14 --svg docs/pictures/both.svg

dist: $(DEV) ## build wheel and sdist into dist/; install each extra from the wheel and use it
	rm -rf dist
	$(PY) -m build
	$(PY) -m twine check --strict dist/*
	$(PY) -m tests.dist dist

lock: $(DEV) ## choose the newest packages that pyproject.toml admits, and write them with hashes into requirements/
	$(LOCK) --extra dev --output-file requirements/dev.txt
	$(LOCK) --extra engine --extra prompts --extra plots --output-file requirements/workshop.txt

docs: pictures ## build the site into site/
	$(PY) -m mkdocs build --strict

clean: ## delete everything that these targets made
	rm -rf $(VENV) build dist site proof-failures hostile-faults *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.installed-engine: pyproject.toml $(if $(LOCKED),requirements/workshop.txt)
	@$(call install,engine)

$(DEV): pyproject.toml $(if $(LOCKED),requirements/dev.txt)
	@$(call install,dev)

# This folder comes before .venv on the path, so only Triton and NumPy are replaced. Up to 3.6 Triton's interpreter converts
# arrays of one element to numbers, which NumPy 2.4 refuses.
$(OLDEST_TRITON)/.installed: | $(DEV)
	$(PY) -m pip install --disable-pip-version-check --quiet --no-deps --target $(OLDEST_TRITON) triton==3.5.0 'numpy<2.4'
	touch $@

# $(1): the extra to install. An interrupted run leaves no stamp, and a .venv without a working pip is made again. The
# distribution was once called minicache; if both names were installed, each entry point would be found twice.
define install
	rm -f $(VENV)/.installed-$(1); \
	set -e; \
	if ! $(PY) -m pip --version >/dev/null 2>&1; then \
		python=; \
		for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14; do \
			if $$candidate -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
				python=$$candidate; break; \
			fi; \
		done; \
		if [ -z "$$python" ]; then \
			echo "minicache needs Python 3.11 or newer with its venv module. Install one, or name it: make PYTHON=/path/to/python3" >&2; \
			exit 1; \
		fi; \
		echo "Making $(VENV) with $$python"; \
		$$python -m venv --clear $(VENV); \
	fi; \
	if $(PY) -m pip show --quiet minicache 2>/dev/null; then \
		$(PY) -m pip uninstall --disable-pip-version-check --quiet --yes minicache; \
	fi; \
	echo "Installing minicache-llm[$(1)] into $(VENV) (once; torch makes this a large download)"; \
	if [ -n "$(LOCKED)" ]; then \
		$(PY) -m pip install --disable-pip-version-check --require-hashes --requirement requirements/$(if $(filter dev,$(1)),dev,workshop).txt; \
		$(PY) -m pip install --disable-pip-version-check --no-deps --no-build-isolation --editable .; \
	else \
		$(PY) -m pip install --disable-pip-version-check --editable '.[$(1)]'; \
	fi; \
	touch $(VENV)/.installed-$(1)
endef
