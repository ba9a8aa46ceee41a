# Everything starts from a bare `python3` with its venv module; the targets make .venv themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PEERS  := .venv-peers
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Each of the two test workers computes on one core; BLAS threads of both would only wait for each other.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -q

.PHONY: demo test test-quick lint format bench reproduce clean help

help:
	@echo "make demo        calibrate the bundled test and show the result"
	@echo "make test        every test (minutes);  make test-quick: the fast ones"
	@echo "make lint        ruff and mypy;         make format: let ruff rewrite"
	@echo "make bench       the benchmarks: scale, the paper's program, efficiency, other packages"
	@echo "make reproduce   the paper's figures and tables, and docs/reproduction.md from them (an hour or two)"

$(VENV)/.core: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -e .
	@touch $@

$(VENV)/.dev: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -e ".[dev]"
	@touch $@ $(VENV)/.core

demo: $(VENV)/.core
	@$(BIN)/spectral-irt demo -o demo-results

test: $(VENV)/.dev
	@$(PYTEST)

test-quick: $(VENV)/.dev
	@$(PYTEST) -m "not slow"

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/.dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev $(PEERS)/.made
	@$(BIN)/python benchmarks/startup.py
	@$(BIN)/python benchmarks/scale.py
	@$(BIN)/python benchmarks/whole_job.py
	@$(BIN)/python benchmarks/against_paper.py
	@$(BIN)/python benchmarks/rivals.py
	@$(BIN)/python benchmarks/efficiency.py
	@$(PEERS)/bin/python benchmarks/against_peers.py

# Other packages, each if it installs. py-irt brings PyTorch, several gigabytes: PEERS_WITH="py-irt" asks for it.
$(PEERS)/.made: pyproject.toml
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip --quiet --disable-pip-version-check install -e .
	@for peer in girth choix raschpy mirt $(PEERS_WITH); do \
	  $(PEERS)/bin/python -m pip --quiet --disable-pip-version-check install $$peer || echo "$$peer does not install here"; \
	done
	@touch $@

# With the datasets in SPECTRAL_IRT_DATA; without it, the simulations and LSAT. Interrupted, it goes on where it was.
reproduce: $(VENV)/.dev
	@OPENBLAS_NUM_THREADS=1 $(BIN)/spectral-irt reproduce all -o build/reproduction
	@PYTHONPATH=docs $(BIN)/python -m reproduction_page build/reproduction docs

clean:
	rm -rf $(VENV) $(PEERS) demo-results .pytest_cache .mypy_cache .ruff_cache build dist
