# Each target sets up .venv by itself the first time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
RUN ?= runs/smollm2-135m-quick

.PHONY: audit test test-cluster test-gpu check bench calibration format clean help

help:
	@echo "make audit   set up, get the default model, audit it, write the report"
	@echo "make test    set up and run the tests"
	@echo "make test-cluster   the tests that start Ray"
	@echo "make test-gpu       the tests that need a CUDA device"
	@echo "make check   lint, formatting, types, layers"
	@echo "make calibration   do verdicts hold? fair and planted models through every path"
	@echo "make bench   speed and memory, as ratios measured in one run"

$(VENV)/.python:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.use: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) -e '.[hf,endpoint]'
	@touch $@

$(VENV)/.dev: $(VENV)/.use
	$(PIP) -e '.[hf,report,web,sentiment,train,endpoint,dev]'
	@touch $@

audit: $(VENV)/.use
	$(BIN)/evenhand fetch smollm2-135m
	$(BIN)/evenhand audit smollm2-135m --out $(RUN)

# Without a network the weights cannot be fetched; the tests that need them then skip.
test: $(VENV)/.dev
	-@$(BIN)/evenhand fetch smollm2-135m glove-6b-50d
	$(BIN)/python -m pytest -n 2 --dist loadfile

# Starts and stops a small Ray cluster on this machine.
test-cluster: $(VENV)/.dev
	$(PIP) -e '.[ray]'
	$(BIN)/python -m pytest -m ray tests/runner

# All other tests run on the processor, also where there is a GPU.
test-gpu: $(VENV)/.dev
	EVENHAND_TEST_GPU=1 $(BIN)/python -m pytest -m gpu tests/models/test_gpu.py

# Spoiled files through every reader; the counts are printed. Hours: make fuzz CASES=1000000
fuzz: $(VENV)/.dev
	$(BIN)/python tests/fuzz/fuzzing.py $(or $(CASES),100000) $(or $(SEED),0)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py tests/test_startup.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.calibration
	$(BIN)/python -m benchmarks.gates

# Thousands of fair models through every path that yields a verdict; writes the table of docs/statistics.md.
calibration: $(VENV)/.dev
	$(BIN)/python -m benchmarks.calibration

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
