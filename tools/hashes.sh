#!/bin/sh
# Print what the site is built with, and the hash of each file: the job that
# publishes the site installs this and nothing else. `make constraints` stores
# it; .venv's pip says which files fit this machine.

set -e
echo '# What the site is built with, by `make constraints`; not to be edited by'
echo "# hand. The files are those for $(.venv/bin/python -V) on" \
    "$(uname -s) $(uname -m)."
echo '# Nothing is built from source, and a file with another hash is refused.'
echo --require-hashes
echo --only-binary :all:
site=$(sed -n '/^# The site/,/^# The tests/p' requirements.txt |
    sed -n 's/ *#.*//; /==/p')
# shellcheck disable=SC2086 # one word each
.venv/bin/python -m pip install --quiet --dry-run --ignore-installed \
    --only-binary :all: --constraint constraints.txt --report - $site |
    .venv/bin/python -c '
import json
import sys

lines = [
    "{name}=={version} --hash=sha256:{hash}".format(
        hash=item["download_info"]["archive_info"]["hashes"]["sha256"],
        **item["metadata"],
    )
    for item in json.load(sys.stdin)["install"]
]
print(*sorted(lines, key=str.lower), sep="\n")
'
