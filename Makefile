# pyenv's commands refuse to run before a version is chosen. Without pyenv this has no effect.
export PYENV_VERSION ?= 3.13:3.12:3.11
# Packages of another environment must not be taken for those of .venv, which has the original hosts.
# Without bytecode, each of the many processes of the tests compiles our modules again.
unexport PYTHONPATH PYTHONHOME PTNT_HOSTS PYTHONDONTWRITEBYTECODE

# The Python of .venv, otherwise the newest usable one; to choose: make setup PYTHON=/path/to/python3.12
PYTHON ?= $(or $(shell export PYENV_VERSION=$(PYENV_VERSION); \
	for python in .venv/bin/python python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import ensurepip, ssl, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	2>/dev/null && echo $$python && break; done), python3)
# uv installs in seconds where pip takes minutes.
INSTALL = .venv/bin/uv pip install --python .venv/bin/python -c requirements/constraints.txt

DEMO = configs/demo/demo_gfl_ptnt_ti.py
OUT = work_dirs/demo

.PHONY: help setup demo demo-masks demo-seg demo-cls test test-fast matrix lint docs bench gpu soak clean

help:
	@echo 'make setup   create .venv with the tested versions (a minute or two; downloads 3 GB)'
	@echo 'make demo    setup, then train, evaluate and draw a small detector on the CPU'
	@echo 'make demo-masks  the same with masks'
	@echo 'make demo-seg    the same with a segmenter'
	@echo 'make demo-cls    the same with a classifier'
	@echo 'make test    setup, then the test suite'
	@echo 'make test-fast   setup, then a part of the suite that takes five minutes on 2 cores'
	@echo 'make matrix  setup, then the suite on the newest and oldest versions and on the forks (an hour)'
	@echo 'make lint    setup, then ruff'
	@echo 'make docs    setup, then the site of the documentation, in build/docs'
	@echo 'make bench   setup, then time the backbones side by side on the CPU (15 minutes)'
	@echo 'make gpu     setup, then measure and test on a GPU (12 minutes, besides compiling; run it again to go on)'
	@echo '             with DEVICE=cpu, try it on small images'
	@echo 'make soak    setup, then kill runs in many ways and check that they resume (20 minutes)'
	@echo 'make clean   remove .venv; the output of the demo stays'

setup: .venv/.complete

# A copied .venv still points to the folder that it was made in, and a different Python may be requested.
ifneq ($(origin PYTHON)$(file <.venv/.complete),file$(CURDIR))
.PHONY: .venv/.complete
endif

# The stamp is written last, so an interrupted setup is never taken for a complete one. The build of this
# checkout uses the installed setuptools. Without the system's window libraries, OpenCV has to be headless.
.venv/.complete: requirements/constraints.txt setup.py pyproject.toml ptnt_mm/version.py
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; (3, 11) <= v <= (3, 13) or sys.exit( \
		f"ptnt_mm needs Python 3.11 to 3.13, and {sys.executable} is {v[0]}.{v[1]}: make setup PYTHON=...")'
	@grep -qs '^#!$(CURDIR)/' .venv/bin/pip && .venv/bin/python -c 'import pip' 2>/dev/null && \
		test "$$($(PYTHON) -V)" = "$$(.venv/bin/python -V)" || if test -L .venv; then \
		echo "error: .venv is a link to $$(readlink .venv), which make setup does not clear: remove the link" >&2; exit 1; \
		else $(PYTHON) -m venv --clear .venv; fi
	@.venv/bin/python -m pip install --quiet -c requirements/constraints.txt pip uv
	@$(INSTALL) setuptools
	@$(INSTALL) --compile-bytecode --no-build-isolation -e '.[all,dev]'
	@.venv/bin/python -c 'import cv2' 2>/dev/null || { .venv/bin/uv pip uninstall --python .venv/bin/python \
		opencv-python && $(INSTALL) --no-deps opencv-python-headless; }
	@.venv/bin/python -m ptnt_mm mmcv-ops install
	@.venv/bin/python -m ptnt_mm doctor
	@printf %s '$(CURDIR)' > $@

demo-masks: DEMO = configs/demo/demo_mask_rcnn_ptnt_ti.py
demo-masks: OUT = work_dirs/demo_masks
demo-seg: DEMO = configs/demo/demo_semantic_fpn_ptnt_ti.py
demo-seg: OUT = work_dirs/demo_seg
demo-cls: DEMO = configs/demo/demo_classifier_ptnt_ti.py
demo-cls: OUT = work_dirs/demo_cls

define TRAIN_TEST_AND_DRAW
	.venv/bin/python tools/train.py $(DEMO) --work-dir $(OUT) --overwrite
	.venv/bin/python tools/test.py $(DEMO) "$$(cat $(OUT)/last_checkpoint)" --work-dir $(OUT)/test \
		--show-dir $(OUT)/pictures
	@.venv/bin/python tools/draw_demo.py $(OUT)/pictures $(OUT)/predictions.jpg
endef

demo demo-masks demo-seg: setup
	@.venv/bin/python tools/make_demo_data.py data/demo
	$(TRAIN_TEST_AND_DRAW)

demo-cls: setup
	@.venv/bin/python tools/make_demo_data.py data/demo
	@.venv/bin/python tools/make_demo_crops.py data/demo data/demo_cls
	$(TRAIN_TEST_AND_DRAW)
	.venv/bin/python tools/infer.py data/demo_cls/val $(DEMO) "$$(cat $(OUT)/last_checkpoint)" \
		--out $(OUT)/val --overwrite --no-draw
	@.venv/bin/python tools/draw_demo.py $(OUT)/val/predictions.json $(OUT)/confusion.png

# Three tests at a time with a thread each: much of the suite is one process waiting for another.
test: setup
	@OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive .venv/bin/python -m pytest -n 3 --dist worksteal

# The networks, and what reads files and settings: nothing that compiles or trains for long.
FAST = tests/test_architecture.py tests/test_links.py tests/cli tests/config tests/data tests/deploy tests/drawing \
	tests/engine tests/models tests/utils tests/weights
test-fast: setup
	@OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive .venv/bin/python -m pytest -q -n 2 --dist worksteal -m 'not slow' $(FAST)

matrix: setup
	.venv/bin/nox

lint: setup
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check

docs: setup
	@.venv/bin/python -c 'import furo, myst_parser' 2>/dev/null || .venv/bin/python -m pip install \
		--quiet --no-build-isolation -c requirements/constraints.txt -e '.[docs]'
	.venv/bin/python -m sphinx -E -W --keep-going -q -b html docs build/docs

bench: setup
	.venv/bin/python tools/dev/time_backbones.py --out docs/research/benchmarks --overwrite

gpu: setup
	.venv/bin/python tools/dev/measure_gpu.py --out work_dirs/gpu$(DEVICE:%=_%) $(DEVICE:%=--device %)

soak: setup
	OMP_NUM_THREADS=1 .venv/bin/python tests/soak.py

clean:
	rm -rf .venv
