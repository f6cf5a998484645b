# Each target sets up .venv by itself the first time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
RUN ?= runs/smollm2-135m-quick

.PHONY: kills flips audit view docs docs-test tutorials test test-portable test-wheel test-cluster test-gpu test-hosts fuzz check bench calibration format clean help

help:
	@echo "make audit   set up, get the default model, audit it, write the report"
	@echo "make view    set up with the viewer, open that run in a web browser (RUN=FOLDER for another)"
	@echo "make test    set up and run the tests"
	@echo "make test-portable  the tests without what only Linux has, with a cp1252 console"
	@echo "make test-wheel     the wheel alone, in an environment without pip"
	@echo "make test-cluster   the tests that start Ray"
	@echo "make test-gpu       the tests that need a CUDA device"
	@echo "make test-hosts     the tests inside Inspect and lm-eval, in environments of their own"
	@echo "make fuzz    spoiled files through every reader (CASES=100000 SEED=0)"
	@echo "make check   lint, formatting, types, layers"
	@echo "make docs    build the documentation into site/ (offline; a warning is an error)"
	@echo "make tutorials   run the tutorials' notebooks anew"
	@echo "make docs-test   run every command and code block of the pages, with real models"
	@echo "make format  what ruff can repair by itself"
	@echo "make kills   SIGKILL over all writing commands, at random moments"
	@echo "make flips   single bits of finished runs: noticed, or nothing shown changes"
	@echo "make calibration   do verdicts hold? fair and planted models through every path"
	@echo "make bench   speed and memory, as ratios measured in one run"
	@echo "make clean   remove .venv and caches"

$(VENV)/.python:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.use: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) -e '.[hf,endpoint]'
	@touch $@

$(VENV)/.web: $(VENV)/.use
	$(PIP) -e '.[hf,endpoint,web]'
	@touch $@

$(VENV)/.dev: $(VENV)/.use
	$(PIP) -e '.[hf,report,web,sentiment,train,endpoint,dev]'
	@touch $@

audit: $(VENV)/.use
	$(BIN)/evenhand fetch smollm2-135m
	$(BIN)/evenhand audit smollm2-135m --out '$(RUN)'

# The run that was asked for, or that of make audit; all of runs/ where there is none. PORT=0: a free one.
PORT ?= 7860
VIEWED = $(if $(filter file,$(origin RUN)),$(or $(wildcard $(RUN)),runs),$(RUN))
view: $(VENV)/.web
	$(BIN)/evenhand view '$(VIEWED)' --port $(PORT)

# Without a network the weights cannot be fetched; the tests that need them then skip.
test: $(VENV)/.dev
	-@$(BIN)/evenhand fetch smollm2-135m glove-6b-50d
	$(BIN)/python -m pytest -n 2 --dist loadfile

# As on a machine without fcntl, resource, os.uname and /proc, whose console is no UTF-8.
test-portable: $(VENV)/.dev
	PYTHONPATH=tests/portable PYTHONIOENCODING=cp1252 PYTHONUTF8=0 \
	  $(BIN)/python -m pytest -n 2 --dist loadfile -m "not ray and not gpu and not hosts"

# Needs the network; another Python: make test-wheel TRY=python3.13
test-wheel: $(VENV)/.python
	$(BIN)/python tests/wheel/clean.py --python $(or $(TRY),$(BIN)/python) --fetch glove-6b-50d

# Starts and stops a small Ray cluster on this machine.
test-cluster: $(VENV)/.dev
	$(PIP) -e '.[ray]'
	$(BIN)/python -m pytest -m ray tests/runner

# All other tests run on the processor, also where there is a GPU.
test-gpu: $(VENV)/.dev
	EVENHAND_TEST_GPU=1 $(BIN)/python -m pytest -m gpu tests/models/test_gpu.py

# Inspect and lm-eval in environments of their own, which need other versions of our dependencies.
HOSTS := .venv-hosts
$(HOSTS)/lm-eval/.made: pyproject.toml
	$(PYTHON) -m venv $(HOSTS)/lm-eval
	$(HOSTS)/lm-eval/bin/pip install --quiet --disable-pip-version-check torch==2.13.0 'lm-eval[hf]>=0.4.13'
	@touch $@

$(HOSTS)/inspect/.made: pyproject.toml
	$(PYTHON) -m venv $(HOSTS)/inspect
	$(HOSTS)/inspect/bin/pip install --quiet --disable-pip-version-check torch==2.13.0 'inspect-ai>=0.3.285' accelerate openai -e '.[hf]'
	@touch $@

test-hosts: $(VENV)/.dev $(HOSTS)/lm-eval/.made $(HOSTS)/inspect/.made
	-@$(BIN)/evenhand fetch smollm2-135m
	EVENHAND_HOSTS=$(HOSTS) $(BIN)/python -m pytest -m hosts tests/integrations

# Spoiled files through every reader; the counts are printed. Hours: make fuzz CASES=1000000
fuzz: $(VENV)/.dev
	$(BIN)/python tests/fuzz/fuzzing.py $(or $(CASES),100000) $(or $(SEED),0)
	EVENHAND_FUZZ_EXAMPLES=2000 $(BIN)/python -m pytest -q tests/fuzz --hypothesis-show-statistics

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) -e '.[docs]'
	@touch $@

# Pages, gallery and reference; tutorials are shown with the outputs that stand in their notebooks.
docs: $(VENV)/.docs
	$(BIN)/python -m website

# Executes the notebooks of docs/tutorials anew and writes their outputs into them.
tutorials: $(VENV)/.docs
	$(BIN)/python -m website.tutorials

docs-test: $(VENV)/.docs
	EVENHAND_DOCS=all $(BIN)/python -m pytest -q tests/documented

# SIGKILL at random moments of every writing command, then the same command again; counts are printed.
kills: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python tests/trust/killing.py $(or $(KILLS),110) $(or $(SEED),0)

# Single bits of every file of finished runs: noticed, or nothing that is shown changes.
flips: $(VENV)/.dev
	$(BIN)/python tests/trust/flipping.py $(or $(FLIPS),1000) $(or $(SEED),0)

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
	rm -rf $(VENV) .venv-hosts .pytest_cache .mypy_cache .ruff_cache
