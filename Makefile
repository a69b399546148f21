# Everything a contributor types. Needs Python 3.11 or newer, make and git; uses uv where it is.

PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null)

FOLDERS := domain ports services adapters entrypoints
BIN := .venv/bin
INSTALLED := build/.installed
LINKS = build/__editable__.herdbook-*/herdbook
EDITABLE := --no-build-isolation --constraint constraints.txt --editable '.[all]'
# One more worker than there are cores: tests wait for the processes that they start.
PYTEST = $(BYTECODE) $(BIN)/python -m pytest --numprocesses $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) \
	--dist worksteal
# Where the environment forbids to keep bytecode, every worker and every process that it starts would
# compile the tests, Hypothesis and us again: 12 s of a processor in each worker.
BYTECODE := PYTHONDONTWRITEBYTECODE=
CLIENTS := build/clients
# Coding agents themselves, which are large: only `make soak` installs and runs them.
HOSTS := build/hosts
# Tests sync thousands of times and nobody cuts the power: where there is room, memory is disk enough.
IN_MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 8000000 { print "TMPDIR=/dev/shm" }')

.DELETE_ON_ERROR:
.PHONY: setup test quick pythons clients browser screenshots soak check format bench demo docs site clean

setup: $(INSTALLED)
# Each file of ours is a link in this tree, which is what Python and mypy read. Files come and go
# more often than pyproject.toml changes, so links are set here and not by installing again.
	@find $(FOLDERS) -name '*.py' -o -name py.typed -o -path '*/static/*' -type f | while read -r file; do \
		for tree in $(LINKS); do \
			test -e "$$tree/$$file" || { \
				mkdir -p "$$tree/$${file%/*}" && ln -sf "$(CURDIR)/$$file" "$$tree/$$file"; }; \
		done; \
	done
	@find -L $(LINKS) -type l -delete

test: setup
	$(IN_MEMORY) $(PYTEST) --durations 25 $(ARGS)

# For a look while working: each test of all engines runs on memory and on one more, which the test's
# name chooses. What `.ci/run` runs is the whole matrix.
quick: setup
	$(IN_MEMORY) $(PYTEST) --quick $(ARGS)

# The other versions of Python that Herdbook supports, where they are found: each in a checkout of its own.
pythons: setup
	@own=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	for version in 3.11 3.12 3.13; do \
		python=$$(command -v python$$version) || continue; \
		if [ $$version = $$own ] || ! $$python -c 'import venv' 2>/dev/null; then continue; fi; \
		echo "== make test on Python $$version"; \
		.ci/checkout build/python-$$version && \
		$(MAKE) --directory=build/python-$$version test PYTHON="$$python" || exit 1; \
	done

# Other people's programs against ours: nothing here is skipped, and what is missing is an error.
# Behind PgBouncer everything holds that holds on a server; what takes its time because it is large
# is left to `make soak`.
LARGE := advice or duckdb or fifty_processes or killed_at or long_chain or rules_say or step-by-step or thousand
# Through a broker everything holds that holds for a DuckDB file, but that readers wait for a stopped writer.
BROKERED := $(addprefix tests/contract/test_,$(addsuffix .py,cascades claiming crashed crud fork journal operations \
	processes stopped_writer threads transactions))
clients: setup $(CLIENTS)/.installed
	@PATH="$$PATH:/usr/sbin:/sbin"; for program in node npm nvim pgbouncer; do \
		command -v $$program >/dev/null || { \
		echo "make clients needs $$program, which is not installed" >&2; exit 1; }; done
	HERDBOOK_CLIENTS_NODE_MODULES="$(CURDIR)/$(CLIENTS)/node_modules" \
		$(PYTEST) --dist loadfile tests/clients $(ARGS)
	HERDBOOK_TEST_PGBOUNCER=1 $(IN_MEMORY) $(PYTEST) --dist loadfile tests/contract \
		-k "postgres and not ($(LARGE))" $(ARGS)
	HERDBOOK_TEST_BROKER=1 $(IN_MEMORY) $(PYTEST) --dist loadfile $(BROKERED) \
		-k "duckdb and not have_to_wait and not fifty_processes" $(ARGS)

# The dashboard in a real browser. Chromium is Debian's own: nothing is downloaded besides packages.
browser: setup $(CLIENTS)/.installed build/.browser-installed
	HERDBOOK_CLIENTS_NODE_MODULES="$(CURDIR)/$(CLIENTS)/node_modules" \
		$(IN_MEMORY) $(PYTEST) tests/browser $(ARGS)

# The pictures of the documents, of a demo whose agents have stopped: a person looks at them before they are committed.
screenshots: setup build/.browser-installed
	@mkdir -p docs/pictures
	PYTHONPATH=. $(BIN)/python .ci/screenshots docs/pictures

soak: setup $(HOSTS)/.installed
	HERDBOOK_HOSTS_NODE_MODULES="$(CURDIR)/$(HOSTS)/node_modules" \
		HYPOTHESIS_PROFILE=soak $(PYTEST) -m soak $(ARGS)
	HERDBOOK_TEST_COLD=1 $(IN_MEMORY) $(PYTEST) tests/e2e tests/attacks $(ARGS)
	PATH="$$PATH:/usr/sbin:/sbin" HERDBOOK_TEST_PGBOUNCER=1 $(PYTEST) --dist loadfile tests/contract \
		-k "postgres and ($(LARGE))" $(ARGS)

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

bench: setup build/.browser-installed
	$(BIN)/python -m benchmarks.commands
	$(BIN)/python -m benchmarks.hooks
	$(BIN)/python -m benchmarks.rpc
	$(BIN)/python -m benchmarks.mcp
	$(BIN)/python -m benchmarks.feed
	$(BIN)/python -m benchmarks.pages
	$(BIN)/python -m benchmarks.checkpoints
	$(BIN)/python -m benchmarks.live
	$(BIN)/python -m benchmarks.stores $(ARGS)
	$(BIN)/python -m benchmarks.provenance $(ARGS)
	$(BIN)/python -m benchmarks.broker

docs: setup
	$(BIN)/python -m herdbook.entrypoints.cli.reference > docs/commands.md
	$(BIN)/python -m herdbook.entrypoints.cli.reference errors > docs/errors.md

# The same files as a small site that loads nothing from elsewhere; `python3 -m http.server -d build/site` shows it.
site: setup build/.site-installed
	@$(BIN)/python .ci/site-source build/site-source
	@rm -rf build/site && cp zensical.toml build/
	$(BIN)/zensical build --clean --strict --config-file build/zensical.toml
	@$(BIN)/python .ci/check-site build/site

# At a screen the demo is the dashboard, until Ctrl-C; without a screen or a browser, and with ARGS, it is told
# in the terminal and ends by itself.
demo: setup
	@if [ -z "$(ARGS)" ] && [ -t 1 ] && [ -z "$$CI" ] && \
		{ [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname)" = Darwin ]; } && \
		$(BIN)/python -c 'import webbrowser; webbrowser.get()' 2>/dev/null; \
	then echo "$(BIN)/herdbook serve --demo"; $(BIN)/herdbook serve --demo; \
	else echo "$(BIN)/herdbook demo $(ARGS)"; $(BIN)/herdbook demo $(ARGS); fi

clean:
	rm -rf build dist herdbook.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -path './.*' -prune -o -name __pycache__ -prune -exec rm -rf {} +

$(CLIENTS)/.installed: tests/clients/package.json pyproject.toml constraints.txt
	@mkdir -p $(CLIENTS) && cp tests/clients/package.json $(CLIENTS)/
	cd $(CLIENTS) && npm install --no-package-lock --no-audit --no-fund --loglevel=error
ifdef UV
	uv pip install --quiet --python .venv --constraint constraints.txt --group clients
else
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group clients
endif
	@touch $@

build/.browser-installed: pyproject.toml constraints.txt
ifdef UV
	uv pip install --quiet --python .venv --constraint constraints.txt --group browser
else
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group browser
endif
	@touch $@

build/.site-installed: pyproject.toml constraints.txt
ifdef UV
	uv pip install --quiet --python .venv --constraint constraints.txt --group docs
else
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
endif
	@touch $@

$(HOSTS)/.installed: tests/hosts/package.json
	@command -v npm >/dev/null || { echo "make soak needs npm, which is not installed" >&2; exit 1; }
	@mkdir -p $(HOSTS) && cp tests/hosts/package.json $(HOSTS)/
	cd $(HOSTS) && npm install --no-package-lock --no-audit --no-fund --loglevel=error
	@touch $@

$(INSTALLED): pyproject.toml constraints.txt .venv/pyvenv.cfg
ifdef UV
	uv pip install --quiet --python .venv --constraint constraints.txt --group dev
	uv pip install --quiet --python .venv $(EDITABLE)
else
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev
	$(BIN)/python -m pip install --quiet $(EDITABLE) --config-settings editable_mode=strict
endif
	@mkdir -p build && touch $@

.venv/pyvenv.cfg:
ifdef UV
	uv venv --quiet --allow-existing $(if $(filter-out file,$(origin PYTHON)),--python '$(PYTHON)') .venv
else
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Herdbook needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
endif
