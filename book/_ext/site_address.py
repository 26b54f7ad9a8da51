"""Derive the site's address from the repository's, as GitHub Pages does.

Links that leave the site need it whole: the canonical address of a page, and
what sphinxext-opengraph tells those who show a link to it. While _config.yml
holds the placeholder OWNER, git's remote `origin` says the repository; where
that is not on GitHub, the site does without all that would lead nowhere.
"""

import re
import subprocess

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

GITHUB = "https://github.com/"
COLAB = "https://colab.research.google.com/github/"
REMOTE = re.compile(
    r"(?:https://(?:[^/@]*@)?|(?:ssh://)?git@)github\.com[:/]"
    r"([\w-]+/[\w.-]+?)(?:\.git)?/?\s*"
)
NEEDS_ADDRESS = re.compile(r'<meta property="og:(?:url|image)[":].*\n')
UNKNOWN = (
    "The site has no Colab, source and issue buttons, as _config.yml names no "
    "repository. To set it, run: make repository SLUG=owner/name"
)
logger = logging.getLogger(__name__)


def repository(url, folder):
    """Return the address of the repository, or "" if nobody has set it.

    url: what _config.yml says; folder: where git is asked for `origin`.
    """
    if not url.startswith(f"{GITHUB}OWNER/"):
        return url
    ask = ["git", "-C", folder, "remote", "get-url", "origin"]
    try:
        answer = subprocess.run(ask, capture_output=True, text=True).stdout
    except OSError:  # there is no git
        return ""
    remote = REMOTE.fullmatch(answer)
    return f"{GITHUB}{remote[1]}" if remote else ""


def set_address(app, config):
    options = config.html_theme_options
    before = options["repository_url"]
    address = options["repository_url"] = repository(before, app.confdir)
    if address:
        owner, name = address.removeprefix(GITHUB).split("/")
        site = f"https://{owner.lower()}.github.io/{name}/"
        config.html_baseurl = config.ogp_site_url = site
    else:
        buttons = ("repository", "issues", "source")
        options |= {f"use_{button}_button": False for button in buttons}
        app.connect("html-page-context", leave_out, priority=900)
        app.connect("build-finished", say)
    config.ogp_site_name = config.html_title
    app.colab = [url.replace(GITHUB, COLAB) for url in (before, address)]


class OwnLinks(SphinxPostTransform):
    """Let a notebook's link to Colab open the chapter in one framework.

    The branch `editions` has them; framework.js exchanges the framework. An
    edition's link leads to its tag. Without a repository there is no link.
    """

    default_priority = 500  # before Sphinx collects the links to be asked

    def run(self):
        old, new = self.app.colab
        for link in list(self.document.findall(nodes.reference)):
            target = link.get("refuri", "")
            if target.startswith(f"{old}/") and new:
                target = target.replace(old, new)
                link["refuri"] = target.replace(
                    "/blob/main/book/", "/blob/editions/pytorch/"
                )
            elif target.startswith(f"{old}/"):
                link.parent.parent.remove(link.parent)


def leave_out(app, name, template, context, doctree):
    if doctree:
        context["metatags"] = NEEDS_ADDRESS.sub("", context["metatags"])


def say(app, exception):
    if not exception:
        logger.info(UNKNOWN)


def setup(app):
    app.connect("config-inited", set_address)
    app.add_post_transform(OwnLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
