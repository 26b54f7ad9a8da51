"""Edges of machines that talk, in the frameworks that are installed."""

import os
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from frameworks import PyTorch, TensorFlow

from cellbycell.common import cut_weights, part_config
from cellbycell.emulator import run_on, run_processes
from cellbycell.figures.names_model import stored_config, stored_weights

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(params=[PyTorch, TensorFlow])
def framework(request):
    return request.param()


def ones(framework, *shape, dtype="float32"):
    return framework.tensor(np.ones(shape, dtype))


def fails(work, size=2, seconds=20, within=10):
    before, begin = threading.active_count(), time.monotonic()
    with pytest.raises(RuntimeError) as error:
        run_on(size, work, seconds=seconds)
    assert time.monotonic() - begin < within
    assert threading.active_count() <= before
    return str(error.value)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_machine_that_stops_ends_all(framework, size):
    def dies(machine):
        if machine.rank == 1:
            raise ValueError("no more")
        return machine.all_reduce(ones(framework, 2))

    def leaves(machine):
        return machine.rank or machine.gather(ones(framework, 2))

    def ends(machine):
        return machine.rank or exit()

    assert fails(dies, size) == "machine 1 stopped: no more"
    assert "machine 1 has left" in fails(leaves, size)
    assert fails(ends, size).startswith("machine 0 stopped")


def test_machines_that_want_different_things_are_told(framework):
    def other_call(machine):
        x = ones(framework, 2)
        return machine.pass_on(x) if machine.rank else machine.gather(x)

    def other_shape(machine):
        return machine.all_reduce(ones(framework, 2 + machine.rank))

    def other_type(machine):
        dtype = ["float32", "float64"][machine.rank]
        return machine.all_reduce(ones(framework, 2, dtype=dtype))

    for work in (other_call, other_shape, other_type):
        said = fails(work)
        assert "and machine" in said and "(2,)" in said


@pytest.mark.parametrize("size", [1, 2, 4])
def test_messages_and_their_bytes(framework, size):
    def work(machine):
        own = np.arange(8.0, dtype="float32") + 8 * machine.rank
        x, sent = framework.tensor(own), [0]
        rows = np.split(own, machine.size)
        found = []
        for message in (
            lambda: machine.all_reduce(x),
            lambda: machine.reduce_scatter(x),
            lambda: machine.gather(x),
            lambda: machine.pass_on(x),
            lambda: machine.all_to_all([framework.tensor(r) for r in rows]),
        ):
            found.append(message())
            sent.append(machine.sent)
        return [np.array(x) for x in found], np.diff(sent).tolist()

    every = np.arange(8.0 * size).reshape(size, 8)
    for rank, (found, sent) in enumerate(run_on(size, work)):
        pieces = np.split(every, size, 1)[rank]
        wanted = every.sum(0), pieces.sum(0), every, every[rank - 1], pieces
        for x, right in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(x, right)
        part = 32 * (size - 1) // size
        assert sent == [
            2 * part, part, 32 * (size - 1), 32 * (size > 1), part
        ]  # fmt: skip


def test_pieces_are_equal(framework):
    def work(machine):
        return machine.reduce_scatter(ones(framework, 3))

    assert "3 rows on 2 machines" in fails(work)


def test_a_machine_that_is_silent_is_not_waited_for(framework):
    def sleeps(machine):
        if machine.rank:
            return time.sleep(2.5)
        return machine.all_reduce(ones(framework, 2))

    assert "silent for 1 s" in fails(sleeps, seconds=1, within=8)


def test_a_part_has_its_rows_and_refuses_what_it_cannot_cut():
    config, tensors = stored_config(), stored_weights()
    parts = [cut_weights(tensors, rank, 2) for rank in range(2)]
    for name, w in tensors.items():
        both = [part[name] for part in parts]
        if both[0].shape == w.shape:
            joined = both[0]
        else:
            joined = np.concatenate(
                both, int("o_proj" in name or "down" in name)
            )
        np.testing.assert_array_equal(joined, w)
    assert parts[0]["lm_head.weight"] is tensors["lm_head.weight"]
    with pytest.raises(ValueError, match="2 key heads on 4 machines"):
        part_config(config, 4)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_losses_and_gradients_of_half_the_range(framework, size):
    logits = np.linspace(-80, 80, 24).reshape(2, 12).astype("float32")
    targets = np.array([11, 0])

    def work(machine):
        own = np.split(logits, machine.size, -1)[machine.rank]
        own, ids = framework.tensor(own), framework.tensor(targets)
        return framework.slope(
            lambda x: framework.vocabulary_loss(machine, x, ids), own
        )

    top = np.logaddexp.reduce(logits.astype(float), -1)
    wanted = top - logits[[0, 1], targets]
    slopes = np.exp(logits - top[:, None])  # probabilities
    slopes[[0, 1], targets] -= 1
    losses, parts = zip(*run_on(size, work), strict=True)
    for found in losses:
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    found = np.concatenate(parts, -1)
    np.testing.assert_allclose(found, slopes, rtol=1e-5, atol=1e-5)


# Processes

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="no torch")


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


@needs_torch
def test_processes_return_what_they_found():
    found = run_processes(2, (by_size,), ["chad", "mali"])
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
@needs_torch
def test_processes_end_with_a_sentence(work, seconds, says):
    before, begin = children(), time.monotonic()
    with pytest.raises(RuntimeError) as error:
        run_processes(2, (work,), ["chad"], seconds=seconds)
    assert says in str(error.value)
    assert time.monotonic() - begin < 40 and children() <= before
