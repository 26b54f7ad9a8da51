"""The chapter on machines: its processes, its programs."""

import os
import re
import subprocess
import sys
import threading

import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


# The programs


def programs():
    from tools.notebooks import Notebook
    from tools.settings import BOOK

    cells = Notebook.read(BOOK / "parallel.ipynb").cells
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


def test_four_processes_learn_what_one_learns(tmp_path):
    (text, said), *_ = [(t, s) for n, t, s in programs() if n == "train.py"]
    (tmp_path / "train.py").write_text(text)
    torchrun = "-m", "torch.distributed.run", "--nproc-per-node"
    assert "torchrun --nproc-per-node 4 train.py" in said
    for size in ("1", "4"):
        done = run(*torchrun, size, "train.py", cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-2000:]
        told = done.stdout.strip()
        assert told.startswith(f"{size} processes: the loss is ")
        assert f"`{told.split(': ')[1]}`" in said


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
