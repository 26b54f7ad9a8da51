#!/bin/sh
# Ask public models what the kit says of them; write the tables of
# book/wild.md. It fails if a model's verdicts are others than before.
# Each environment in _build/wild sees the packages of .venv, torch among them.

TRANSFORMERS="transformers==5.23.0 tokenizers==0.23.3 huggingface_hub==2.4.0"
OLD="transformers==5.12.0 tokenizers==0.22.2 huggingface_hub==1.33.0"
PACKAGES="x-transformers==2.31.0 performer-pytorch==1.1.4
    routing-transformer==1.6.1 reformer-pytorch==1.4.4
    linear-attention-transformer==0.19.1 local-attention==1.11.2
    sinkhorn-transformer==0.11.4 simple-hierarchical-transformer==0.4.0
    h-transformer-1d==0.1.9 memory-efficient-attention-pytorch==0.1.6
    tiktoken==0.14.0 keras-hub==0.32.0"
# Installed without what it asks for, an older NumPy and JupyterLab.
ALONE="llms-from-scratch==1.0.19"
export HF_HUB_OFFLINE=1 KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3
status=0

# ask NAME GROUP PACKAGE...: ask a group of models in an environment.
ask() {
    python=_build/wild/$1/bin/python
    group=$2
    shift 2
    place='import sysconfig; print(sysconfig.get_path("purelib"))'
    .venv/bin/python -m venv "${python%/bin/python}" || exit 1
    .venv/bin/python -c "$place" >"$("$python" -c "$place")/base.pth"
    "$python" -m pip install --quiet "$@" || exit 1
    [ "$group" != packages ] ||
        "$python" -m pip install --quiet --no-deps "$ALONE" || exit 1
    "$python" -m benchmarks.wild "$group" book/wild.md || status=1
}

# shellcheck disable=SC2086  # each list is several words
{
    ask transformers transformers $TRANSFORMERS
    ask old transformers $OLD
    ask packages packages $PACKAGES
}
exit $status
