"""SmolLM2 by the book's Llama and by Hugging Face's, side by side.

    python -m benchmarks.talk

Seconds to load the file, peak memory, and seconds a token with the cache,
behind prompts of 30 and of 500 tokens; each side in processes of its own that
take turns, on one thread and on two. Prints the median ratio, ours / theirs.
"""

import json
import resource
import subprocess
import sys
import time
from statistics import median

NEW, ROUNDS = 20, 3
PROMPTS = 30, 500


def ours(path):
    """Return a function: ids (1, T) -> ids with new ones; by our cache."""
    import torch

    from cellbycell.gguf import load_gguf

    model = load_gguf(path)

    @torch.no_grad()
    def write(ids):
        cache, new = [], ids
        for _ in range(NEW):
            logits, cache = model(new, cache)
            new = logits[:, -1:].argmax(-1)  # (1, 1)
            ids = torch.cat([ids, new], 1)
        return ids

    return write


def theirs(path):
    """Return the same by the library's `generate`."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    ).eval()
    return lambda ids: model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=NEW,
        min_new_tokens=NEW,
        do_sample=False,
    )


def measure(side, threads):
    """Print what one side takes, as JSON."""
    import torch

    from cellbycell.smol import smol_path

    torch.set_num_threads(threads)
    began = time.perf_counter()
    write = {"ours": ours, "theirs": theirs}[side](smol_path())
    found = {"load": time.perf_counter() - began}
    for length in PROMPTS:
        ids = torch.arange(100, 100 + length)[None]  # (1, T)
        write(ids[:, :5])
        began = time.perf_counter()
        write(ids)
        found[f"a token behind {length}"] = (time.perf_counter() - began) / NEW
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(found | {"GB": peak / 2**20}))


def main():
    """Let both sides take turns; print medians and ratios."""
    for threads in (1, 2):
        runs = {"ours": [], "theirs": []}
        for side in [*runs] * ROUNDS:
            said = subprocess.check_output(
                [sys.executable, "-m", __spec__.name, side, str(threads)],
                text=True,
                stderr=subprocess.DEVNULL,
            )
            runs[side].append(json.loads(said.splitlines()[-1]))
        for name in runs["ours"][0]:
            one, other = (
                median(run[name] for run in runs[side]) for side in runs
            )
            print(
                f"{threads} thread(s), {name}: {one:.3f} and {other:.3f}, "
                f"ratio {one / other:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:]:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        main()
