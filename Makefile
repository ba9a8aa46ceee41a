# Everything starts from a bare `python3` with its venv module; the targets make .venv themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOWEST := .venv-lowest
# Nothing is said about an installation that succeeds; one that fails says why, all of it, and ends the target.
quietly = @log=$$(mktemp) && { $(1) >$$log 2>&1 || { cat $$log >&2; rm -f $$log; exit 1; }; } && rm -f $$log
PIP    := $(BIN)/python -m pip --disable-pip-version-check
# Each test worker computes on one core; BLAS threads of several would only wait for each other. The hundreds of commands
# that tests start find compiled modules, whatever the shell says about writing them.
WORKERS := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PYTEST := -m pytest -n auto --dist worksteal -q

PAGES_BY_MYPY := tests/unit/test_docs_site.py::test_mypy_accepts_the_python_of_every_page

SPHINX := $(BIN)/python -m sphinx -W --keep-going -q -j 2 -d build/doctrees docs build/site

.PHONY: docs screenshots demo test test-quick test-lowest test-r lint format bench validate reproduce release-check clean help

help:
	@echo "make demo        calibrate the bundled quiz and show the result"
	@echo "make test        every test (minutes);  make test-quick: the fast ones"
	@echo "make test-lowest the fast ones with the oldest versions that pyproject.toml allows"
	@echo "make lint        ruff and mypy;         make format: let ruff rewrite"
	@echo "make bench       the main benchmarks: time and memory, efficiency, ranks, ordered answers, findings"
	@echo "make validate    numbers of other programs, books, closed forms and simulation beside ours (minutes); no R"
	@echo "make docs        the documentation as a site, build/site/index.html; pictures of the tutorials are made anew"
	@echo "make screenshots the pictures of the report and of the app in docs"
	@echo "make release-check  wheel and sdist built, installed and used in empty environments of every Python found"
	@echo "make test-r      the R package in r/spectralirt, where R is"
	@echo "make reproduce   the paper's figures and tables, and docs/reproduction.md from them (an hour or two)"

$(VENV)/.core: pyproject.toml
	$(call quietly,test -x $(BIN)/python || $(PYTHON) -m venv $(VENV))
	$(call quietly,$(PIP) install -e .)
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(call quietly,test -x $(BIN)/python || $(PYTHON) -m venv $(VENV))
	$(call quietly,$(PIP) install "pip>=25.1")
	$(call quietly,$(PIP) install -e ".[all]" --group dev)
	@touch $@ $(VENV)/.core

# A browser for the tests of pages. Where it cannot be had that is said, and those tests are skipped.
$(VENV)/.browser: $(VENV)/.dev tests/set_up_browser.sh
	@sh tests/set_up_browser.sh $(VENV)

demo: $(VENV)/.core
	@$(BIN)/spectral-irt demo -o demo-results

# All but mypy on the Python of the pages, which is a part of `make lint`.
test: $(VENV)/.dev $(VENV)/.browser
	@$(WORKERS) $(BIN)/python $(PYTEST) --deselect $(PAGES_BY_MYPY)

test-quick: $(VENV)/.dev
	@$(WORKERS) $(BIN)/python $(PYTEST) -m "not slow"

# The lowest version of each package that pyproject.toml names, and the newest of what those need.
$(LOWEST)/.made: pyproject.toml
	$(call quietly,test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST))
	$(call quietly,$(LOWEST)/bin/python -m pip --disable-pip-version-check install uv)
	$(call quietly,$(LOWEST)/bin/uv pip install --compile-bytecode --python $(LOWEST)/bin/python --resolution lowest-direct -e ".[all]" --group dev)
	@touch $@

# It says how much of the source the quick tests run, too; what commands run in processes of their own is not counted.
test-lowest: $(LOWEST)/.made
	@$(WORKERS) $(LOWEST)/bin/python $(PYTEST) -m "not slow" --cov=spectral_irt --cov-report=
	@echo "Lines that the quick tests run: $$($(LOWEST)/bin/python -m coverage report --format=total)%"

# The last one reads the Python of README.md and docs.
lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q $(PAGES_BY_MYPY)

format: $(VENV)/.dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev
	@$(BIN)/python benchmarks/speed.py
	@$(BIN)/python benchmarks/limits.py --sizes "10 M"
	@$(BIN)/python benchmarks/efficiency.py
	@$(BIN)/python benchmarks/ranks.py
	@$(BIN)/python benchmarks/ordered.py
	@$(BIN)/python benchmarks/what_fits.py --replicates 50

# Every number of docs/validation again.
validate: $(VENV)/.dev
	@$(WORKERS) $(BIN)/python -m validation

# With the datasets in SPECTRAL_IRT_DATA; without it, the simulations and LSAT. Interrupted, it goes on where it was.
reproduce: $(VENV)/.dev
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m reproduction all -o build/reproduction
	@$(BIN)/python -m reproduction.page build/reproduction docs

# The tutorials are run from their first line; what they print and draw goes into the pages.
docs: $(VENV)/.dev
	@$(BIN)/python docs/page_runner.py --update docs/tutorials/*.md
	@$(SPHINX)
	@echo "build/site/index.html"

# Of the bundled quiz, in a browser; SPECTRAL_IRT_CHROMIUM names another one.
screenshots: $(VENV)/.dev $(VENV)/.browser
	@$(BIN)/python scripts/screenshots.py

# Needs a network for the packages that the empty environments get.
release-check: $(VENV)/.dev
	@$(BIN)/python scripts/release_check.py

# R with reticulate and testthat; eRm, psychotools and psychotree are compared with where they are.
test-r: $(VENV)/.core
	@sh r/check.sh $(BIN)

clean:
	rm -rf $(VENV) $(LOWEST) demo-results .pytest_cache .mypy_cache .ruff_cache build dist
