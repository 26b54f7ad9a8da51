"""A thousand requests: its common part, for what comes after it.

Built and explained in the chapter *A thousand requests* of the book.
Written by `make package`: change it in the chapter.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

import numpy as np


class Pages:
    """The pages of a memory: who has which, and which ids they hold.

    count: how many there are; size: the slots of each.
    """

    def __init__(self, count, size):
        self.count, self.size = count, size
        self.free, self.users = deque(range(count)), Counter()
        self.page_of, self.ids_of = {}, {}  # of full pages, for later

    def grow(self, table, stop):
        """Give a table room for stop tokens, or return False."""
        missing = -(-stop // self.size) - len(table)
        if missing > len(self.free):
            return False
        for _ in range(missing):
            page = self.free.popleft()
            self.users[page] = 1
            self.page_of.pop(self.ids_of.pop(page, None), None)  # forget
            table.append(page)
        return True

    def give_back(self, table):
        """Take a table's pages back; those without a user are free."""
        for page in reversed(table):
            self.users[page] -= 1
            if not self.users[page]:
                self.free.append(page)

    def slots(self, table):
        """Return the slots of a table, in the order of its text."""
        return [p * self.size + i for p in table for i in range(self.size)]

    def keep(self, table, ids, stop):
        """Note which ids the full pages of a text hold, up to stop."""
        for n in range(stop // self.size):
            key = tuple(ids[: (n + 1) * self.size])
            if key not in self.page_of and table[n] not in self.ids_of:
                self.page_of[key], self.ids_of[table[n]] = table[n], key

    def known(self, ids):
        """Return the pages that hold the beginning of ids, now shared.

        At least one id is left to read, because its logits are needed.
        """
        table = []
        for stop in range(self.size, len(ids), self.size):
            page = self.page_of.get(tuple(ids[:stop]))
            if page is None:
                break
            if not self.users[page]:
                self.free.remove(page)
            self.users[page] += 1
            table.append(page)
        return table


def likeliest(logits):
    """Return the ids (B,) of the largest logits (B, N), of any framework."""
    return np.asarray(logits).argmax(-1)


@dataclass(eq=False)
class Request:
    """A text to be written on; ids: its prompt, then what is written."""

    ids: list
    max_len: int  # of what is written
    end_id: int | None = None
    choose: object = likeliest  # logits (1, N) to an id (1,)
    read: int = 0  # how many of its ids have keys in memory
    written: int = 0
    table: list = field(default_factory=list)  # its pages

    def done(self):
        """Return whether it has written all, or its end."""
        ended = self.written > 0 and self.ids[-1] == self.end_id
        return ended or self.written == self.max_len


class Server:
    """Write on many texts together, in steps.

    read: spans to logits, as read_together reads them; pages: of its memory;
    budget: the tokens of a step; most: the requests that run at a time.
    """

    def __init__(self, read, pages, vocab_size, budget=64, most=16):
        self.read, self.pages, self.vocab_size = read, pages, vocab_size
        self.budget, self.most = budget, most
        self.waiting, self.running, self.count = deque(), [], Counter()

    def submit(self, request):
        """Let a request wait. Raises ValueError if it can't be served."""
        room = self.pages.count * self.pages.size
        if not request.ids or request.max_len < 1:
            raise ValueError("The prompt is empty, or max_len is below 1.")
        if not all(0 <= i < self.vocab_size for i in request.ids):
            raise ValueError(f"An id is not in [0, {self.vocab_size}).")
        if len(request.ids) + request.max_len > room:
            raise ValueError(f"It may need more than all {room} slots.")
        self.waiting.append(request)

    def leave(self, request):
        """Take a request out: it has ended, is cancelled, or makes room."""
        for line in (self.waiting, self.running):
            if request in line:
                line.remove(request)
        self.pages.give_back(request.table)
        request.table, request.read = [], 0

    def plan(self):
        """Return [(request, stop)]: who reads, and how far."""
        plan, left = [], self.budget
        for request in [*self.running]:
            if request not in self.running or not left:
                continue
            stop = min(len(request.ids), request.read + left)
            while not self.pages.grow(request.table, stop):
                last = self.running[-1]  # the youngest makes room
                self.leave(last)
                self.waiting.appendleft(last)
                self.count["preempted"] += 1
                if last is request:
                    break
            else:
                plan.append((request, stop))
                left -= stop - request.read
        while left and self.waiting and len(self.running) < self.most:
            request = self.waiting[0]
            request.table = self.pages.known(request.ids)
            request.read = len(request.table) * self.pages.size
            stop = min(len(request.ids), request.read + left)
            if not self.pages.grow(request.table, stop):
                self.leave(request)
                self.waiting.appendleft(request)
                break
            self.count["shared"] += request.read
            self.running.append(self.waiting.popleft())
            plan.append((request, stop))
            left -= stop - request.read
        return plan

    def step(self):
        """Read once; return [(request, id)] of what is written."""
        plan, slots, written = self.plan(), self.pages.slots, []
        if not plan:
            return []
        spans = [
            (one.ids[one.read : stop], one.read, slots(one.table)[:stop])
            for one, stop in plan
        ]
        self.count["steps"] += 1
        self.count["read"] += sum(len(ids) for ids, _, _ in spans)
        for (one, stop), row in zip(plan, self.read(spans), strict=True):
            one.read = stop
            self.pages.keep(one.table, one.ids, stop)
            if stop == len(one.ids):  # all is read: write
                (new,) = one.choose(row[None])
                one.ids.append(int(new))
                one.written += 1
                written.append((one, int(new)))
                if one.done():
                    self.leave(one)
        return written
