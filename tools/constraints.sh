#!/bin/sh
# Write constraints.txt: install requirements.txt, unconstrained, into a fresh
# environment elsewhere, and list what it brought. Write .ci/site.txt with it.

set -e
book=$PWD
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
mkdir "$fresh/tools"
cp tools/install.sh tools/hashes.sh "$fresh/tools"
grep -vE '^-[ce] ' requirements.txt >"$fresh/requirements.txt"
cd "$fresh"
sh tools/install.sh || { cp -r _build "$book"; exit 1; }

# A build's own label ("+cpu") and the packages that only CUDA builds need
# would tie the list to one kind of machine.
{
    echo '# Every package that requirements.txt leads to, by `make constraints`'
    echo "# on $(.venv/bin/python -V); not to be edited by hand."
    .venv/bin/python -m pip freeze --all --exclude pip |
        sed 's/+.*//' | grep -vE '^(nvidia|cuda|triton)'
} >constraints.txt
sh tools/hashes.sh >site.txt
mv constraints.txt "$book"
mv site.txt "$book/.ci"
