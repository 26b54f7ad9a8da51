"""The chapter on machines: its checkers, its processes, its programs.

test_exercises.py tries each checker on the stub and the solution.
"""

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


# Wrong answers


def pieces(fused, num_heads, key_heads):
    width = len(fused) // (num_heads + 2 * key_heads)
    return np.split(
        fused, [width * num_heads, width * (num_heads + key_heads)]
    )


def from_pieces(order=(0, 1, 2), turn=lambda rank, size: rank):
    def part(fused, num_heads, key_heads, rank, size):
        three = pieces(fused, num_heads, key_heads)
        return np.concatenate(
            [np.split(three[i], size)[turn(rank, size)] for i in order]
        )

    return part


def by_rows(fused, num_heads, key_heads, rank, size):
    three = pieces(fused, num_heads, key_heads)
    return np.concatenate([part[rank::size] for part in three])


def both_pieces(length, rank, size, last=lambda rank, size: -1 - rank):
    parts = np.split(np.arange(length), 2 * size)
    return np.concatenate([parts[rank], parts[last(rank, size)]])


def turned(length, rank, size):
    return np.roll(both_pieces(length, rank, size), length // size // 2)


def back(length, rank, size):
    parts = np.split(both_pieces(length, rank, size), 2)
    return np.concatenate([parts[0], parts[1][::-1]])


def sums(parts):
    return np.array([np.logaddexp.reduce(part) for part in parts])


def own_part(parts, target):
    for part in parts:
        if target < len(part):
            return part
        target -= len(part)


def clamped(parts, target):
    total = 0
    for part in parts:
        total += part[np.clip(target, 0, len(part) - 1)]
        target -= len(part)
    return total


def own_tops(parts, target):
    whole = np.concatenate(parts)
    below = sum(np.exp(part - part.max()).sum() for part in parts)
    return whole.max() + np.log(below) - whole[target]


def logit(parts, target):
    return np.concatenate(parts)[target]


WRONG = {
    "loss_factor": {
        "machines are forgotten": lambda n, r: n[r] / n.sum(),
        "own mean counts": lambda n, r: 1.0,
        "upside down": lambda n, r: n.sum() / n[r] / len(n),
        "of a summed loss": lambda n, r: len(n) / n.sum(),
        "divides by the machines already": lambda n, r: (
            n[r] / n.sum() / len(n)
        ),
        "shares are missing": lambda n, r: len(n),
    },
    "fused_part": {
        "cuts through the queries": lambda fused, h, k, rank, size: np.split(
            fused, size
        )[rank],
        "another machine": from_pieces(turn=lambda r, size: (r + 1) % size),
        "are neighbours": by_rows,
        "queries come first": from_pieces((1, 2, 0)),
        "keys and values are exchanged": from_pieces((0, 2, 1)),
    },
    "zigzag_positions": {
        "these are blocks": lambda n, rank, size: np.split(np.arange(n), size)[
            rank
        ],
        "in turn": lambda n, rank, size: np.arange(n)[rank::size],
        "counted from the back": lambda n, rank, size: both_pieces(
            n, rank, size, lambda r, m: m + r
        ),
        "in the other order": turned,
        "read backwards": back,
        "count from 0": lambda *given: both_pieces(*given) + 1,
    },
    "loss_of_parts": {
        "of one part only": lambda parts, target: (
            np.logaddexp.reduce(own_part(parts, target)) - logit(parts, target)
        ),
        "were added": lambda parts, target: (
            sums(parts).sum() - logit(parts, target)
        ),
        "were averaged": lambda parts, target: (
            sums(parts).mean() - logit(parts, target)
        ),
        "a maximum for each part": own_tops,
        "gives zero, not a logit": lambda parts, target: (
            np.logaddexp.reduce(sums(parts)) - clamped(parts, target)
        ),
        "sign is exchanged": lambda parts, target: (
            logit(parts, target) - np.logaddexp.reduce(sums(parts))
        ),
        "is missing": lambda parts, target: np.logaddexp.reduce(sums(parts)),
        "large logits overflow": lambda parts, target: (
            np.log(np.exp(np.concatenate(parts)).sum()) - logit(parts, target)
        ),
    },
}


def test_wrong_answer_is_named(verdict, says):
    assert says in verdict


# Processes


def by_size(whole, rows, rank, size):
    return [rank, size, len(rows)]


def by_dying(whole, rows, rank, size):
    if rank:
        raise ValueError("no more")
    dist.barrier()  # noqa: F821


def by_exit(whole, rows, rank, size):
    if rank:
        sys.exit(3)
    dist.barrier()  # noqa: F821


def by_leaving(whole, rows, rank, size):
    if rank:
        sys.exit(0)
    dist.barrier()  # noqa: F821


def by_waiting(whole, rows, rank, size):
    if rank:
        import time

        time.sleep(1000)
    dist.barrier()  # noqa: F821


def children():
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return set(listed.read_text().split()) if listed.exists() else set()


def test_processes_return_what_they_found(book):
    found = book["run_processes"](2, (by_size,), ["chad", "mali"])
    assert found == [{"by_size": [0, 2, 2]}, {"by_size": [1, 2, 2]}]


@pytest.mark.parametrize(
    ("work", "seconds", "says"),
    [
        (by_dying, 60, "process 1 stopped: ValueError: no more"),
        (by_exit, 60, "process 1 stopped: code 3"),
        (by_leaving, 60, "process 1 stopped: code 0"),
        (by_waiting, 8, "stopped: it is at work for more than 8 s"),
    ],
)
def test_processes_end_with_a_sentence(book, work, seconds, says):
    before, begin = children(), time.monotonic()
    with pytest.raises(RuntimeError) as error:
        book["run_processes"](2, (work,), ["chad"], seconds=seconds)
    assert says in str(error.value)
    assert time.monotonic() - begin < 40 and children() <= before


# The programs


def programs():
    from tools.notebooks import Notebook
    from tools.settings import BOOK

    cells = Notebook.read(BOOK / "machines.ipynb").cells
    for cell in cells:
        for text in re.findall(
            r"```python\n(.*?)\n```", cell.source, re.DOTALL
        ):
            yield re.search(r"(\w+\.py)\"", text)[1], text, cell.source


def run(*command, cwd):
    settings = os.environ | {
        "OMP_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    settings["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=settings,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_four_processes_write_what_one_writes(book, tmp_path):
    (text, said), *_ = [(t, s) for n, t, s in programs() if n == "shard.py"]
    (tmp_path / "shard.py").write_text(text)
    torchrun = "-m", "torch.distributed.run"
    assert "torchrun --nproc-per-node 4 shard.py" in said
    done = run(*torchrun, "--nproc-per-node", "4", "shard.py", cwd=tmp_path)
    names = book["alone"][0][0][:3]
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == f"4 processes write: {names}"
    assert f"`{names}`" in said


def test_the_mirrored_program_learns(tmp_path):
    (text,) = [text for name, text, _ in programs() if name == "mirrored.py"]
    (tmp_path / "mirrored.py").write_text(text)
    done = run("mirrored.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    loss = float(re.search(r"the loss is ([\d.]+)", done.stdout)[1])
    assert 2.4 < loss < 2.9


MIRRORED = """
import keras, numpy as np, tensorflow as tf
from cellbycell.names import encode_names
(cpu,) = tf.config.list_physical_devices("CPU")
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
rows = encode_names(NAMES)
inputs, targets = rows[:, :-1], rows[:, 1:].copy()
targets[(inputs == 0) & (targets == 0)] = -1

def step(strategy, **given):
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = keras.Sequential([keras.layers.Embedding(30, 30)])
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=-1)
        model.compile(keras.optimizers.SGD(1.0), loss)
        model.build((None, inputs.shape[1]))
    before = model.get_weights()[0]
    x, y = given.get("x", inputs), given.get("y", targets)
    model.fit(x, y, batch_size=8, shuffle=False, verbose=0)
    return model.get_weights()[0] - before

one = tf.distribute.get_strategy()
both = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
off = [np.linalg.norm(step(one, **g) - step(both, **g))
       / np.linalg.norm(step(one, **g))
       for g in ({}, {"x": inputs[:, :4], "y": inputs[:, 1:5]})]
value = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
logits = tf.zeros((4, 5, 30))
with both.scope():
    halved = both.experimental_local_results(tf.function(
        lambda: both.run(lambda: value(tf.zeros((4, 5)), logits)))())[0]
print("off", *off, float(halved) / float(value(tf.zeros((4, 5)), logits)))
"""


def test_keras_fit_takes_the_mean_of_means(book, tmp_path):
    """A third of the norm is off; with no pads nothing is."""
    names = book["short"] + book["long"]
    (tmp_path / "x.py").write_text(MIRRORED.replace("NAMES", repr(names)))
    done = run("x.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    off, even, half = map(float, done.stdout.split("off")[1].split())
    assert 0.25 < off < 0.4 and even < 1e-5 and abs(half - 0.5) < 1e-5


# The chapter's own


def test_rounding_writes_no_other_letter(book):
    """Another machine moves a logit, and a loss, by a little."""
    generate, begin, held = (
        book[n] for n in ("generate", "begin", "held_rows")
    )
    models = [*book["models"], *book["apart"]]
    cases = [(model, begin) for model in models]
    for model, prompts in [*cases, (book["llama"], book["prompts"])]:
        first = prompts.shape[1] - 1
        ids = generate(model, prompts, 12)
        best = model(ids)[:, first:-1].topk(2).values
        going = (ids[:, first + 1 :] != 0) | (ids[:, first:-1] != 0)
        assert (best[..., 0] - best[..., 1])[going].min() > 0.01
    for model in models:
        tenths = 10 * book["name_loss"](model, held).item()
        assert abs(tenths % 1 - 0.5) > 0.02


def test_two_hundred_runs_are_right_and_leave_nothing(book):
    torch = book["torch"]

    def work(machine):
        own = torch.tensor([float(machine.rank)])
        found = machine.all_reduce(own), machine.pass_on(own)
        return [*(x.item() for x in found), machine.gather(own).tolist()]

    def dying(machine):
        return 1 // machine.rank, machine.gather(torch.ones(2))

    before = threading.active_count()
    for i in range(200):
        size = 1 + i % 4
        for rank, found in enumerate(book["run_on"](size, work)):
            all_ranks = [[r] for r in range(size)]
            total = size * (size - 1) / 2
            assert found == [total, (rank - 1) % size, all_ranks]
        if i % 10 == 0:
            with pytest.raises(RuntimeError, match="machine 0 stopped: "):
                book["run_on"](2 + size, dying)
    assert threading.active_count() == before
