PYTHON ?= .venv/bin/python

.PHONY: check format docs test

check:
	PYTHON=$(PYTHON) ./check

format:
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

docs:
	$(PYTHON) docs/generate.py
	$(PYTHON) docs/make_pictures.py

test:
	$(PYTHON) -m pytest -n auto --dist loadfile
