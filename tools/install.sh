#!/bin/sh
# Make .venv from requirements.txt; the Makefile says when. What goes wrong
# is told in one sentence, and the whole story stands in the log.
# PYTHON is the Python to take, INSTALL the installer to call, REQUIREMENTS
# what it is given: the job that publishes the site takes .ci/site.txt.

supported='3.11 3.12 3.13'
log=_build/install.log
INSTALL=${INSTALL:-.venv/bin/python -m pip install}
REQUIREMENTS=${REQUIREMENTS:-requirements.txt}

fail() {
    echo "$*" >&2
    exit 1
}

# The file .venv/installed is the proof that an install came to its end.
installed() {
    [ -f .venv/installed ] && .venv/bin/python -c '' >/dev/null 2>&1
}

# Make an empty .venv with the first of the given Pythons that can.
make_venv() {
    for python
    do
        # Executed, because a name on the path may be a shim without a Python.
        version=$("$python" -c \
            'import sys; print("%d.%d" % sys.version_info[:2])' \
            2>/dev/null) || continue
        case " $supported " in
        *" $version "*) ;;
        *)
            other="$other, $python is $version"
            continue
            ;;
        esac
        "$python" -m venv --clear .venv >"$log" 2>&1 && return
        without="$python"
    done
    [ -z "$without" ] || fail "$without cannot make a virtual environment:" \
        "its venv or ensurepip module seems to be missing (on Debian and" \
        "Ubuntu, 'sudo apt install python3-venv' brings them; see $log)."
    fail "The pinned packages need Python 3.11, 3.12 or 3.13, and none was" \
        "found${other:+ (}${other#, }${other:+)}: install one, or name it:" \
        "make site PYTHON=/path/to/python3.11"
}

mkdir -p _build
if ! installed
then
    if [ "$PYTHON" ]
    then make_venv "$PYTHON"
    else make_venv python3.11 python3.12 python3.13 python3 python
    fi
fi

rm -f .venv/installed
echo "Installing into .venv; this takes some minutes (see $log)."
if ! $INSTALL -r "$REQUIREMENTS" >"$log" 2>&1
then
    if grep -qiE 'connection|name resolution|unreachable|timed out|dns' "$log"
    then fail "The package index cannot be reached: connect to the network" \
        "and run make again (see $log)."
    fi
    fail "The packages could not be installed: $(tail -n 1 "$log") (see $log)."
fi
touch .venv/installed
