"""Say how many tokens a second SmolLM2 writes, for several texts at once.

    python -m benchmarks.serving

Each round takes a step of 1, 2, 4, 8 and 16 texts, in turns, on one thread;
what is stored is the median, as a ratio to one text. Another machine has other
ratios.
"""

import json
import time
from functools import partial
from statistics import median

import numpy as np
import torch

from cellbycell.common import Request, Server, SharedPages
from cellbycell.figures.serving_drawn import FILE
from cellbycell.gguf import gguf_config
from cellbycell.pytorch import make_memory, read_together
from cellbycell.smol import load_smol, read_smol

COUNTS = (1, 2, 4, 8, 16)


def measure(rounds=12, length=32, counts=COUNTS):
    """Return the seconds of a step, {texts at once: median}."""
    torch.set_num_threads(1)
    model, config = load_smol(), gguf_config(*read_smol())
    rng, servers = np.random.default_rng(0), {}
    for count in counts:
        pages = SharedPages(4 * count, 16)
        read = partial(read_together, model, make_memory(config, 64 * count))
        servers[count] = Server(read, pages, config.vocab_size, 10**6)
        for _ in range(count):
            ids = rng.integers(100, 40000, size=length).tolist()
            servers[count].submit(Request(ids, 30))
        servers[count].step()  # reads the prompts
    seconds = {count: [] for count in counts}
    for _ in range(rounds):
        for count, server in servers.items():
            start = time.process_time()
            server.step()
            seconds[count].append(time.process_time() - start)
    return {count: median(times) for count, times in seconds.items()}


def main():
    """Measure, print and store."""
    steps = measure()
    ratios = {n: round(n * steps[1] / steps[n], 1) for n in COUNTS}
    for count, ratio in ratios.items():
        print(f"{count:3} at once: a step of {steps[count]:.3f} s, x {ratio}")
    told = {"command": "python -m benchmarks.serving", "ratios": ratios}
    FILE.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
