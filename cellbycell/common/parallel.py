"""One model, several machines: its common part, for what comes after it.

Built and explained in the chapter *One model, several machines* of the book.
Written by `make package`: change it in the chapter.
"""

import threading
from dataclasses import replace

import numpy as np


def count_letters(rows):
    """Return how many letters and ends of names follow in rows (B, T)."""
    return int(((rows[:, 1:] != 0) | (rows[:, :-1] != 0)).sum())


class Board:
    """Where machines say what they want to do, before they do it together."""

    def __init__(self, size, seconds):
        self.size, self.seconds, self.notes = size, seconds, {}
        self.turns, self.changed = [0] * size, threading.Condition()

    def write(self, rank, what, given=None):
        """Leave a note of a machine for its next turn; return its number."""
        with self.changed:
            self.turns[rank] += 1
            self.notes[rank, self.turns[rank]] = what, given
            self.changed.notify_all()
            return self.turns[rank]

    def agree(self, rank, what, given=None):
        """Return what all machines give, once all have said the same."""
        turn, found = self.write(rank, what, given), []
        for other in range(self.size):
            place, silent = (other, turn), f"is silent for {self.seconds} s"
            with self.changed:
                self.changed.wait_for(
                    lambda p=place: p in self.notes, self.seconds
                )
                said, theirs = self.notes.get(place, (silent, None))
            if said != what:
                raise RuntimeError(f"it {what}, and machine {other} {said}")
            found.append(theirs)
        return found


def run_threads(work, board):
    """Return what work(rank) returns, in a thread for each machine."""
    found, errors = {}, []

    def run(rank):
        try:
            found[rank] = work(rank)
        except BaseException as error:  # whatever ends a thread
            errors.append((rank, error))
        board.write(rank, "has left")

    threads = [
        threading.Thread(target=run, args=(rank,), daemon=True)
        for rank in range(board.size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * board.seconds)
    for rank in set(range(board.size)) - {*found} - {r for r, _ in errors}:
        board.write(rank, "has left")
        errors.append((rank, TimeoutError("it is still at work")))
    for rank, error in errors:  # the first one
        why = str(error) or type(error).__name__
        raise RuntimeError(f"machine {rank} stopped: {why}") from error
    return [found[rank] for rank in range(board.size)]


def part_config(config, size):
    """Return the sizes of a machine's part of a Llama with these sizes.

    Raises ValueError if size does not divide the key heads.
    """
    if config.key_heads % size:
        raise ValueError(f"{config.key_heads} key heads on {size} machines")
    names = "num_heads", "key_heads", "d_ff"
    sizes = {name: getattr(config, name) // size for name in names}
    return replace(config, **sizes)


def cut_weights(tensors, rank, size):
    """Return a machine's part of a Llama's tensors, {name: (out, in)}.

    Raises ValueError if a matrix cannot be cut into equal parts.
    """
    found = dict(tensors)
    for name, w in tensors.items():
        part = name.split(".")[-2]
        if part in ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"):
            found[name] = np.split(w, size)[rank]
        elif part in ("o_proj", "down_proj"):
            found[name] = np.split(w, size, axis=1)[rank]
    return found
