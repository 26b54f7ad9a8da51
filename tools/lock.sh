#!/bin/sh
# Write constraints.txt, and .ci/site.txt for the job that publishes the site,
# from requirements.txt. What is locked and still fits stays; with an argument
# such as --upgrade or --upgrade-package=keras, uv takes newer versions.

set -e
command -v uv >/dev/null || { echo 'Install uv: pip install uv' >&2; exit 1; }
lock="uv pip compile --quiet --no-header --no-annotate --python-version 3.11.7"
wanted=$(mktemp -d)
trap 'rm -rf "$wanted"' EXIT

grep -vE '^-[ce] ' requirements.txt >"$wanted/all.in"
sed -n '/^# The site/,/^# The tests/p' requirements.txt >"$wanted/site.in"
grep -v '^#' constraints.txt >"$wanted/all.txt" # what uv tries to keep
$lock "$@" "$wanted/all.in" --output-file "$wanted/all.txt"
# The packages that only CUDA builds need would tie the list to one machine.
{
    echo '# Every package that requirements.txt leads to, by `make constraints`;'
    echo '# not to be edited by hand.'
    grep -vE '^(nvidia|cuda|triton)' "$wanted/all.txt"
} >"$wanted/constraints.txt"
$lock --generate-hashes --constraint "$wanted/constraints.txt" \
    "$wanted/site.in" --output-file "$wanted/site.txt"
{
    echo '# What the site is built with, by `make constraints`; not to be edited'
    echo '# by hand. Nothing is built from source, and a file with another hash'
    echo '# is refused.'
    echo --require-hashes
    echo --only-binary :all:
    cat "$wanted/site.txt"
} >.ci/site.txt
cp "$wanted/constraints.txt" constraints.txt
