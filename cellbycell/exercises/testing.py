"""The exercises of *Testing a Transformer*."""

from itertools import combinations

import numpy as np

from . import Exercise, Wrong, as_array

# The checks, by what they cost.
GROUPS = {
    "no run": ["target_alignment", "duplicate_weights", "parameter_count"],
    "one run": ["output_shape", "initial_loss"],
    "a few runs": ["causality", "causality_train", "prefix_consistency"]
    + ["padding_invariance", "loss_padding_invariance", "batch_invariance"]
    + ["determinism", "token_influence", "position_dependence"]
    + ["source_dependence", "context_dependence", "greedy_decoding"],
    "a backward pass": ["causality_grad", "gradient_flow"],
    "a second model": ["reference_parity"],
    "train a copy": ["overfit_one_batch"],
}
CHECKS = sum(GROUPS.values(), [])
# What each check says of each bug: . passes, x does not, _ was not run. The
# chapter computes it and asserts that it is this.
MATRIX = dict(
    line.split(" = ")
    for line in """
scores not divided = ...................x.
scores divided by the width = ...................x.
softmax over the queries = __.x_________________
blocked scores are 1e-9 = .....xxxxx......xx.x.
mask inverted = __.x_________________
dropout in evaluation = .......____x...._..x.
heads split by view = .....xxxxx......xx.x.
heads merged by view = .....xxxxx......xx.x.
one projection for query and key = ..................xx.
no output projection = ..................xx.
deviation of a sample = ...................x.
epsilon outside of the root = .....................
mean not subtracted = ...................x.
norm over the positions = .....xxxxx......xx.x.
norm without shift = ..................xx.
no ReLU = ...................x.
ReLU at the end = ...................x.
no residual connection = ...................xx
pre-norm for post-norm = ...................x.
no norm = ..................xx.
one norm for two sub-layers = ..x..................
one layer used twice = ..x..................
a seed in the loop = .x...................
the last layer is skipped = ..................xx.
no norm after the stack = ..................xx.
one attention for two jobs = ..x..................
decoder reads itself = .............xx...xxx
no residual around the memory = ...................x.
memory never read = .............xx...xxx
causal mask on the memory = ...................x.
tokens not scaled = ...................x.
no positions = .............x.....x.
one position for all = .......xxx...x..x..x.
positions along the batch = ..........x..x.....x.
positions begin at one = ...................x.
sines and cosines in halves = ...................x.
encoder without its mask = ........x..........x.
queries masked, not keys = __.x_________________
causal mask in the encoder = ...................x.
memory detached = ..................x..
no causal mask = .....xxx.x.......x.x.
causal mask in training only = .....x.x.x.......x.x.
causal mask off by one = .....xxx.x.......x.x.
causal mask without diagonal = __.x_________________
memory without its mask = ........x..........x.
target's pads masked, too = .....................
softmax before the loss = .........x.........xx
pads in the loss = x........x...........
loss divided by all positions = .........x...........
not shifted = x....................
shifted the wrong way = x...............x....
decoding begins with a pad = ................x....
decoding reads the first position = ................x....
gradients never cleared = .....................
""".strip().split("\n")
)


def says(bug, check):
    """Return what a check says of a bug: ".", "x" or "_"."""
    return MATRIX[bug][CHECKS.index(check)]


def text(found):
    """Read a name."""
    if not isinstance(found, str):
        raise Wrong(f"it returns {type(found).__name__}, not a name")
    return found


# 1: name the bug

ASKED = "causal mask in training only"


def named(bug):
    return lambda: bug


def differing(bug):
    """Return the sentence about the first check that tells a bug apart."""
    words = {".": "passes", "x": "fails", "_": "is not run"}
    for check, wanted in zip(CHECKS, MATRIX[ASKED], strict=True):
        if (found := says(bug, check)) != wanted:
            return f"with this bug {check} {words[found]}"


check_name_bug = Exercise(
    number=1,
    right=named(ASKED),
    cases=lambda: [()],
    mistakes={
        sentence: tuple(
            named(bug) for bug in MATRIX if differing(bug) == sentence
        )
        for sentence in dict.fromkeys(map(differing, MATRIX))
        if sentence
    },
    otherwise="the matrix has no bug of this name",
    close=str.__eq__,
    reads=text,
)


# 2: a check of causality


def looking_models(length):
    """Return (name, model, whether it is causal) in a list."""
    table = np.random.default_rng(0).normal(size=(10, 3))
    past = np.tri(20)  # more positions than any row has

    def model_of(shares):
        def model(ids):
            t = np.arange(len(ids))
            x = table[ids] + np.sin(t)[:, None]  # (T, C)
            return shares[: len(ids), : len(ids)] @ x

        return model

    def balanced(ids):
        later = np.append(ids[1:], 0)
        return np.array([ids + later, ids - later]).T  # (T, C)

    models = [
        ("that looks at the past", model_of(past)),
        ("with a constant output", lambda ids: np.ones((len(ids), 2))),
        ("that sees itself alone", model_of(np.eye(20))),
        ("that sees everything", model_of(np.ones((20, 20)))),
        ("off by one", model_of(np.tri(20, k=1))),
        ("whose columns have the same sum", balanced),
    ]
    for k in range(length):
        for q in range(k):
            leak = past.copy()
            leak[q, k] = 0.01
            name = f"whose position {q} sees a little of position {k}"
            models.append((name, model_of(leak)))
    return [(name, m, number < 3) for number, (name, m) in enumerate(models)]


def judge_models(is_causal):
    """Return True if all are judged rightly; raise Wrong for the first."""
    for ids in (np.array([4, 1, 7, 2, 9]), np.array([0, 3, 0, 9])):
        for name, model, causal in looking_models(len(ids)):
            if (found := is_causal(model, ids)) != causal:
                verdict = "causal" if found else "not causal"
                raise Wrong(f"a model {name} is called {verdict}")
    return True


def truth(found):
    """Read True or False."""
    array = as_array(found)
    if array.shape or array.dtype.kind not in "bi":
        kind = type(found).__name__
        raise Wrong(f"it returns {kind}, not True or False")
    return bool(array)


def causal_if(part, change=lambda i: (i + 1) % 10, positions=None, gap=1e-8):
    """Return an answer that compares a part of the rows."""

    def is_causal(model, ids):
        for t in positions or range(1, len(ids)):
            other = ids.copy()
            other[t] = change(ids[t])
            before, after = (part(model(x), t) for x in (ids, other))
            if not np.allclose(before, after, rtol=0, atol=gap):
                return False
        return True

    return is_causal


def past(rows, t):
    return rows[:t]


check_is_causal = Exercise(
    number=2,
    right=causal_if(past),
    cases=lambda: [judge_models],
    mistakes={
        "a model that sees everything is called causal": (
            lambda model, ids: True
        ),
        "a model that looks at the past is called not causal": causal_if(
            lambda rows, t: rows[: t + 1]
        ),
        "a model off by one is called causal": causal_if(
            lambda rows, t: rows[: t - 1]
        ),
        "a model whose columns have the same sum is called causal": causal_if(
            lambda rows, t: rows[:t].sum(axis=1)
        ),
        "a model whose position 0 sees a little of position 1 is called "
        "causal": (
            causal_if(past, positions=[-1]),
            causal_if(past, gap=0.5),
        ),
        "a model whose position 0 sees a little of position 2 is called "
        "causal": causal_if(past, lambda i: 0),
        "it returns list, not True or False": lambda model, ids: [True],
    },
    close=bool.__eq__,
    reads=truth,
)


# 3: three calls

CANDIDATES = [
    "no causal mask",
    "one position for all",
    "encoder without its mask",
    "tokens not scaled",
    "memory detached",
    "one layer used twice",
    "pads in the loss",
]


class Questions:
    """Answers for one bug, as the kit gave them, and counts them."""

    def __init__(self, bug):
        self.bug, self.calls = bug, 0

    def __call__(self, name):
        """Return whether the model passes the check of that name."""
        if name not in CHECKS or says(self.bug, name) == "_":
            raise ValueError(f"the kit has no answer to {str(name)[:20]!r}")
        self.calls += 1
        return says(self.bug, name) == "."


def ask_about_each(find_bug):
    """Return True if each bug is found in time; raise Wrong for the first."""
    for bug in CANDIDATES:
        ask = Questions(bug)
        found = find_bug(ask)
        if ask.calls > 3:
            raise Wrong(f"it calls {ask.calls} checks for {bug!r}")
        if found != bug:
            raise Wrong(f"it takes {bug!r} for {found!r}")
    return True


def candidate(found):
    """Read one of the candidates."""
    if not isinstance(found, str) or found not in CANDIDATES:
        raise Wrong(f"it returns {str(found)[:30]!r}, which is no candidate")
    return found


def halving(ask):
    """Ask what halves the candidates."""
    if ask("reference_parity"):
        if not ask("gradient_flow"):
            return "memory detached"
        twice = not ask("parameter_count")
        return "one layer used twice" if twice else "pads in the loss"
    if ask("prefix_consistency"):
        blind = not ask("padding_invariance")
        return "encoder without its mask" if blind else "tokens not scaled"
    return "one position for all" if ask("causality") else "no causal mask"


def asking_four(ask):
    names = ["reference_parity", "prefix_consistency", "padding_invariance"]
    said = [ask(name) for name in [*names, "causality"]]
    return "memory detached" if all(said) else "no causal mask"


def asking_once(ask):
    ask("prefix_consistency")
    return "no causal mask"


check_find_bug = Exercise(
    number=3,
    right=halving,
    cases=lambda: [ask_about_each],
    mistakes={
        "it calls 4 checks for 'no causal mask'": asking_four,
        "it returns 'no mask', which is no candidate": lambda ask: "no mask",
        "it takes 'one position for all' for 'no causal mask'": asking_once,
    },
    close=bool.__eq__,
    reads=candidate,
)


# 4: the fewest checks


def together(names, seen):
    """Return the bugs that at least one of some checks sees."""
    return set().union(*(seen[name] for name in names))


def smallest(seen):
    """Return the first of the smallest choices that see all bugs."""
    for size in range(len(seen) + 1):
        for names in combinations(seen, size):
            if together(names, seen) == together(seen, seen):
                return names


def given_sets():
    """Return two choices of checks, with the bugs that each sees."""
    small = {"a": "12347890", "b": "123456x", "c": "7890uvy", "d": "56uv"}
    yield {name: {*bugs} for name, bugs in (small | {"e": "xy"}).items()}
    yield {
        check: {bug for bug in MATRIX if says(bug, check) == "x"}
        for check in GROUPS["a few runs"]
    }


def choose_checks(fewest):
    """Return True if the choices are right; raise Wrong for the first."""
    for seen in given_sets():
        # Whoever changes the sets changes copies.
        found = fewest({name: {*bugs} for name, bugs in seen.items()})
        if not {*found} <= {*seen}:
            raise Wrong("it does not return names of checks")
        if missed := together(seen, seen) - together(found, seen):
            raise Wrong(f"these checks miss {len(missed)} bugs")
        if len({*found}) > (least := len(smallest(seen))):
            raise Wrong(
                f"it takes {len({*found})} checks, and {least} would do"
            )
    return True


def names_of(found):
    """Read names."""
    try:
        return [*found]
    except TypeError:
        raise Wrong("it does not return names of checks") from None


def greedy(seen):
    found, wanted = [], set().union(*seen.values())
    while wanted:
        found.append(max(seen, key=lambda name: len(seen[name] & wanted)))
        wanted -= seen[found[-1]]
    return found


def spoil(seen):
    """Join all sets into the first, which then has every bug."""
    first, *others = seen.values()
    for bugs in others:
        first |= bugs
    return [*seen][:1]


check_fewest = Exercise(
    number=4,
    right=smallest,
    cases=lambda: [choose_checks],
    mistakes={
        "it does not return names of checks": lambda seen: ["none"],
        "these checks miss 6 bugs": (lambda seen: ["a"], spoil),
        "it takes 3 checks, and 2 would do": greedy,
    },
    close=bool.__eq__,
    reads=names_of,
)
