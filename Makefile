PYTHON ?= .venv/bin/python

.PHONY: check format docs model test

check:
	PYTHON=$(PYTHON) ./check

format:
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

docs:
	$(PYTHON) docs/generate.py
	$(PYTHON) docs/make_pictures.py
	$(PYTHON) docs/make_tutorial.py
	$(PYTHON) docs/make_screens.py

# The learned classifier, from seeds alone, in some minutes on two cores. One thread a process, as the
# processes are as many as the cores.
model:
	OMP_NUM_THREADS=1 $(PYTHON) -m perfdiag.classifiers.training

test:
	$(PYTHON) -m pytest -n auto --dist loadfile
