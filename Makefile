# Everything happens in a virtual environment of its own.
#   make book    set up, measure and build   _build/html/index.html
#   make test    set up, then run every test and every notebook (quick mode)
# Another Python: make book PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BOOK := _build/html

.PHONY: book test canonical serve zip constraints

book: $(INSTALLED)
	$(BIN)/jupyter-book build . --all -W -n --keep-going
	@echo "Open $(BOOK)/index.html"

test: $(INSTALLED)
	$(BIN)/python -m pytest --nbval

# Bring every notebook, and the page that follows from the rules of lint, into the
# form that is kept in version control.
canonical: $(INSTALLED)
	$(BIN)/python -m tools.canonical
	$(BIN)/python -m tools.lint_page

serve:
	$(PYTHON) -m http.server --bind 127.0.0.1 --directory $(BOOK) 8000

# The book for a reader without git: a notebook unpacks it where it lies.
zip:
	mkdir -p dist
	git archive --format zip --prefix dataloader-book/ -o dist/dataloader-book.zip HEAD

# Needs uv. See CONTRIBUTING.md.
constraints:
	uv pip compile pyproject.toml tools/tested.in --all-extras --universal \
		--python-version 3.10 --no-header --no-annotate --no-emit-index-url \
		--quiet --output-file constraints.txt

# The stamp is written last: an interrupted set-up is done again.
$(INSTALLED): pyproject.toml constraints.txt
	@echo "Setting up $(VENV): several GB to install, once."
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or newer is needed: make PYTHON=..." if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --constraint constraints.txt --editable ".[book,test]"
	@touch $@
