# Everything from a fresh checkout: each command makes its own virtual environment and installs what it needs.
#   make demo        reads drawn letters by GICConv and five other layers, offline
#   make test        runs the tests
#   make test-gpu    tests the GPU kernels in Triton's interpreter and compiles them for real GPUs; none is needed
#   make test-slow   runs the tests that take minutes (TORCH_GIC_DATA: folder or URL of TUDataset zip files)
#   make test-old-cpu  runs the tests of the kernels on an emulated processor of 2008 without AVX (needs qemu-user)
#   make sanitize    runs the tests of the kernels under the address, undefined-behaviour and thread sanitizers of GCC
#   make soak        looks for graphs that break something, for MINUTES=10
#   make fuzz        calls everything with arguments that are wrong, for MINUTES=10: crashes, hangs, silent differences
#   make lint        checks style and types
#   make wheel       builds the sdist and the wheel with compiled kernels into dist, and checks them
#   make test-wheel  installs that wheel into an empty environment, and uses it there without a compiler
#   make docs        runs the tutorials and builds the documentation, offline: docs/build/index.html
# WHEELS=folder makes the tests cover torch-scatter, torch-sparse and torch-geometric-pool too, from wheels in that folder.

PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0
# The one that goes with it.
TRITON ?= triton==3.7.1

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCES := setup.py pyproject.toml $(shell find torch_gic csrc -name '*.py' -o -name '*.cpp' -o -name '*.h')

.PHONY: demo test test-gpu test-slow test-old-cpu sanitize soak fuzz lint format docs wheel test-wheel clean

demo: $(VENV)/benchmark
	$(BIN)/python examples/quickstart.py

test: $(VENV)/test
	$(BIN)/pytest

test-gpu: $(VENV)/triton
	$(BIN)/pytest test/gpu
	$(BIN)/python -m benchmark.gpu.compile

test-slow: $(VENV)/test
	$(BIN)/pytest -m slow

test-old-cpu: $(VENV)/test
	qemu-x86_64 -cpu Nehalem $(BIN)/python -m pytest test/fields test/encoding test/coarsening

COMMA := ,
# The sanitizer has to be there before Python, which is not instrumented, but not before the compiler: so that comes first. Without
# kernels their tests would be skipped: so these are asked for.
define SANITIZED
	CXXFLAGS="$(2)" TORCH_GIC_CACHE=$(VENV)/sanitized $(BIN)/python -c "from torch_gic.kernels.compile import compiled_library as make; make()"
	export CXXFLAGS="$(2)" TORCH_GIC_CACHE=$(VENV)/sanitized ASAN_OPTIONS=detect_leaks=0 \
	TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
	LD_PRELOAD="$$($(CXX) -print-file-name=$(1)) $$($(CXX) -print-file-name=libstdc++.so.6)"; \
	$(BIN)/python -c "from torch_gic.kernels.library import load_kernels as load; assert load().library, load().reason" \
	&& $(BIN)/python -m pytest test/fields test/encoding test/coarsening
endef

sanitize: $(VENV)/test
	$(call SANITIZED,libasan.so,-fsanitize=address$(COMMA)undefined -fno-sanitize-recover=undefined -O1 -g)
	$(call SANITIZED,libtsan.so,-fsanitize=thread -O1 -g)

MINUTES ?= 10
soak: $(VENV)/test
	$(BIN)/python test/soak.py --minutes $(MINUTES)

fuzz: $(VENV)/test
	$(BIN)/python test/fuzz.py --minutes $(MINUTES)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(wildcard csrc/*/*)

format: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(wildcard csrc/*/*)

# A warning is an error: a link that leads nowhere, a formula or docstring that does not parse.
docs: $(VENV)/docs
	$(BIN)/python docs/draw_dataflow.py
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/build
	@echo "docs/build/index.html"

# Against the torch of the environment, so without isolation; the wheel is built from the sdist, which shows that it is complete.
wheel: $(VENV)/release
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	@$(BIN)/python -m zipfile -l dist/*.whl | grep -q _C.abi3.so || (echo "no kernels in the wheel: see above" && false)
	$(BIN)/abi3audit --strict --report dist/*.whl
	$(BIN)/twine check --strict dist/*

# TORCH=torch==2.10.0 and the like say with which torch; the wheel that is there is taken. No PATH: no compiler.
test-wheel:
	@test -n "$(wildcard dist/*.whl)" || (echo "no wheel in dist: make wheel first" && false)
	rm -rf $(VENV)-wheel
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check "$(TORCH)"
	$(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	env -i PATH=/nonexistent HOME=/nonexistent CXX=/nonexistent $(abspath $(VENV)-wheel)/bin/python -I test/installed_wheel.py

clean:
	rm -rf $(VENV) $(VENV)-wheel build dist docs/build docs/jupyter_execute *.egg-info quickstart.png coarsening.png

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "torch_gic needs Python 3.10 or later")'
	$(PYTHON) -m venv $(VENV)

# PyTorch first and by its exact version: a range would take the newest build there is.
$(VENV)/torch: | $(BIN)/python
	@echo "Installing PyTorch (once)"
	$(PIP) "$(TORCH)"
	@touch $@

$(VENV)/triton: $(VENV)/test
	$(PIP) "$(TRITON)"
	@touch $@

$(VENV)/release: $(VENV)/torch
	$(PIP) build twine abi3audit "setuptools>=77"
	@touch $@

# The package with the extra that the file is named after.
$(VENV)/benchmark $(VENV)/test $(VENV)/dev $(VENV)/docs: $(VENV)/torch $(SOURCES)
	@echo "Installing torch_gic[$(notdir $@)]"
	$(PIP) --force-reinstall --no-deps .
	$(PIP) ".[$(notdir $@)]"
ifdef WHEELS
	-$(PIP) --find-links $(WHEELS) --only-binary torch_scatter,torch_sparse torch_scatter torch_sparse ".[tgp]"
endif
	@touch $@
