PYTHON ?= .venv/bin/python

.PHONY: check format lint types layers test

check: lint types layers test

format:
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .

lint:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .

types:
	$(PYTHON) -m mypy

layers:
	$(dir $(PYTHON))lint-imports

test:
	$(PYTHON) -m pytest
