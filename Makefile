# `make help` lists the commands. Everything runs out of .venv, which is made
# when it is missing, half made, or older than the requirements.

# What may be given: make site PYTHON=/path/to/python3.12, and so on.
PYTHON =
INSTALL = .venv/bin/python -m pip install
REQUIREMENTS = requirements.txt
PORT = 8000
FRAMEWORK =
GRADED =
UPGRADE =
export PYTHON INSTALL REQUIREMENTS
# An activated environment must not leak into this one, and without its cache
# of compiled files every process compiles all tests anew.
unexport PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE

PAGES := $(shell find book -name '*.md' -o -name '*.ipynb')
PARTS := _config.yml _toc.yml $(wildcard CITATION.cff) \
	$(shell find book/_* $(wildcard cellbycell) -type f ! -path '*/__pycache__/*')

.PHONY: help site serve pdf test proof outputs package pages wild \
	sheet single grade export constraints repository release clean
.DEFAULT_GOAL := help

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | expand -t 13

site: _build/site ## build the book, with warnings as errors
	@echo 'The book is built: open $(CURDIR)/_build/html/index.html'

serve: site ## build the book and serve it on localhost (PORT=8000)
	@echo 'Read it at http://localhost:$(PORT); Ctrl-C ends.'
	@.venv/bin/python -m http.server --bind 127.0.0.1 \
		--directory _build/html $(PORT)

pdf: site ## print the whole book to _build/book.pdf
	@.venv/bin/python -m tools.commands.pdf

test: $(if $(NB),.venv/installed,site) ## test the book and its site (NB=book/x.ipynb for a chapter)
	.venv/bin/python -m pytest $(if $(NB),$(NB) tests/chapters tests/test_exercises.py tests/pages/test_pages.py --only $(NB))

proof: .venv/installed ## prove that the tools notice what they should, by tests/tools
	.venv/bin/python -m pytest --no-loadscope-reorder tests/tools

outputs: .venv/installed ## run notebooks and store what they print (NB=book/x.ipynb, or all)
	@.venv/bin/python -m tools.commands.outputs $(NB)

package: .venv/installed ## write cellbycell from what the chapters define
	@.venv/bin/python -m tools.commands.package

pages: .venv/installed ## write what the pages say of the chapters: hours, counts, tables
	@.venv/bin/python -m tools.commands.pages

grade: .venv/installed ## say which answers of a class are right (NB=book/x.ipynb SUBMISSIONS=folder OUT=grades.csv)
	@.venv/bin/python -m tools.commands.grade '$(NB)' '$(SUBMISSIONS)' '$(OUT)'

export: .venv/installed ## write exercises for a grader to build/exports/ (NB=book/x.ipynb FOR=nbgrader or otter, FRAMEWORK=pytorch)
	@.venv/bin/python -m tools.commands.export '$(NB)' '$(FOR)' '$(FRAMEWORK)'

sheet: .venv/installed ## write a chapter's exercises to build/sheets/ (NB=book/x.ipynb, FRAMEWORK=pytorch, GRADED=1 without checks)
	@.venv/bin/python -m tools.commands.sheet '$(NB)' '$(FRAMEWORK)' '$(GRADED)'

single: .venv/installed ## write chapters in one framework to build/editions/ (NB=book/x.ipynb FRAMEWORK=pytorch, or all)
	@.venv/bin/python -m tools.commands.single '$(NB)' '$(FRAMEWORK)'

wild: .venv/installed ## ask public models what the kit says of them, and write book/wild.md (half an hour)
	@sh benchmarks/wild.sh

constraints: ## lock requirements.txt anew, by uv (UPGRADE=--upgrade for newer ones)
	@sh tools/lock.sh $(UPGRADE)

repository: .venv/installed ## set the repository's address (SLUG=owner/name)
	@.venv/bin/python -m tools.commands.repository '$(SLUG)'

release: .venv/installed ## make an edition's files (VERSION=2026.1 OUT=folder)
	@.venv/bin/python -m tools.commands.release '$(VERSION)' '$(OUT)'

clean: ## remove what was built and caches, but not .venv
	rm -rf _build build .hypothesis .pytest_cache .ruff_cache
	find . -path ./.venv -prune -o -name __pycache__ -exec rm -rf {} +

# A changed page is built alone; any other change builds all anew. A build
# that failed leaves nothing behind, as Sphinx warns of a page only once.
_build/site: .venv/installed $(PAGES) $(PARTS)
	@$(if $(filter-out $(PAGES),$?),rm -rf _build/html _build/.doctrees)
	.venv/bin/jupyter-book build --warningiserror --nitpick --keep-going . \
		|| { rm -rf _build/html _build/.doctrees; exit 1; }
	@touch $@

# A .venv whose Python is gone counts as not made.
.venv/installed: requirements.txt requirements-model.txt constraints.txt \
		$(shell unset PYTHONHOME PYTHONPATH; \
			.venv/bin/python -c '' >/dev/null 2>&1 || echo broken)
	@sh tools/install.sh

.PHONY: broken
broken:
