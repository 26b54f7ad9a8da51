"""Run every chapter with its shape comments and numbers as checks."""

import pytest

from tools.notebooks import paths

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.mark.parametrize("name", [path.stem for path in paths()])
def test_shape_comments_and_numbers_in_prose_hold(chapter_run, name):
    messages = chapter_run(name).messages
    assert not messages, "\n" + "\n".join(messages)
