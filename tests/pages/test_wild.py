"""What wild.md says of the pinned packages is still so, by its own code."""

import re
from ast import literal_eval
from importlib.metadata import version

import numpy as np
import pytest

from tools.settings import BOOK

pytestmark = pytest.mark.xdist_group("frameworks")
PAGE = (BOOK / "wild.md").read_text("utf-8")
# (heading, code) of each section with code; the first is what all need.
(_, FIRST), *CODES = re.findall(
    r"(?ms)^###? ([^\n]+)\n(?:(?!^#).)*?^```python\n(.*?)^```", PAGE
)
PACKAGE = r"(?m)^(?:from|import) (transformers|keras_hub|keras)\b"
CODES = {title: code for title, code in CODES if re.search(PACKAGE, code)}


def check(code):
    """Run code after the lines that all need; fail if it prints else."""
    printed, said = [], re.findall(r"(?m)^print\(.*\)  # (.+)$", code)
    exec(FIRST + code, {"print": printed.append})
    assert len(said) == len(printed) > 0
    name = re.search(PACKAGE, code)[1].replace("_", "-")
    place = f"{name} {version(name)}: say so on book/wild.md"
    for old, new in zip(map(literal_eval, said), printed, strict=True):
        new = np.asarray(new)
        if np.allclose(new, old, rtol=0.1, atol=1e-5):
            continue
        if np.allclose(old, 0, atol=1e-5):
            pytest.fail(f"back in {place}", pytrace=False)
        if new.dtype == float and new.ndim == 0 and new > 1e-5:
            pytest.fail(f"{new}, not {old}, in {place}", pytrace=False)
        pytest.fail(f"mended in {place}", pytrace=False)


@pytest.mark.parametrize("title", CODES)
def test_a_finding_is_still_so(title):
    check(CODES[title])


def test_a_finding_that_is_mended_is_named():
    code = "import keras\nprint(keras.ops.add(1, 1) == 3)  # True\n"
    with pytest.raises(pytest.fail.Exception) as failure:
        check(code)
    assert re.fullmatch(
        r"mended in keras \S+: say so on book/wild\.md", str(failure.value)
    )
