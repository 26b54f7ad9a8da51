"""Every page says which edition of the book it belongs to."""

import re

from tools.settings import HTML, branch, contents, edition


def test_every_footer_says_version_and_date():
    version, date = edition()
    begins = "Edition" if branch() == version else "Latest text, which may"
    for name in [*contents(), "search", "genindex"]:
        page = (HTML / f"{name}.html").read_text("utf-8")
        (said,) = re.findall('<span class="edition">(.*?)</span>', page)
        assert said.startswith(begins), name
        assert f"dition {version}, {date}" in said, name
