"""Derive the site's address from the repository's, as GitHub Pages does.

Links that leave the site need it whole: the canonical address of a page, and
what sphinxext-opengraph tells those who show a link to it. While _config.yml
holds the placeholder OWNER, the site does without all that leads nowhere.
"""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from tools.settings import edition

GITHUB = "https://github.com/"
COLAB = "https://colab.research.google.com/github/"
NEEDS_ADDRESS = re.compile(r'<meta property="og:(?:url|image)[":].*\n')
UNKNOWN = (
    "The site has no Colab, source and issue buttons, as _config.yml names no "
    "repository. To set it, run: make repository SLUG=owner/name"
)
logger = logging.getLogger(__name__)


def is_set(address):
    return not address.startswith(f"{GITHUB}OWNER/")


def set_address(app, config):
    options = config.html_theme_options
    address = options["repository_url"]
    if is_set(address):
        owner, name = address.removeprefix(GITHUB).split("/")
        site = f"https://{owner.lower()}.github.io/{name}/"
        config.html_baseurl = config.ogp_site_url = site
    else:
        for button in ("repository", "issues", "source"):
            options[f"use_{button}_button"] = False
        app.connect("html-page-context", leave_out, priority=900)
        app.connect("build-finished", lambda *_: logger.info(UNKNOWN))
    config.ogp_site_name = config.html_title
    version, date = edition()
    is_it = options["repository_branch"] == version  # its tag
    text = f"{'Edition' if is_it else 'After edition'} {version}, {date}."
    options["extra_footer"] += f' <span class="edition">{text}</span>'


class OwnLinks(SphinxPostTransform):
    """Let a notebook's link to Colab open the chapter in one framework.

    The branch `editions` has them; framework.js exchanges the framework. An
    edition's link leads to its tag. Without a repository there is no link.
    """

    default_priority = 500  # before Sphinx collects the links to be asked

    def run(self):
        address = self.config.html_theme_options["repository_url"]
        own = f"{address.replace(GITHUB, COLAB)}/blob/"
        for link in list(self.document.findall(nodes.reference)):
            target = link.get("refuri", "")
            if target.startswith(own) and is_set(address):
                link["refuri"] = target.replace(
                    "/blob/main/book/", "/blob/editions/pytorch/"
                )
            elif target.startswith(own):
                link.parent.parent.remove(link.parent)


def leave_out(app, name, template, context, doctree):
    if doctree:
        context["metatags"] = NEEDS_ADDRESS.sub("", context["metatags"])


def setup(app):
    app.connect("config-inited", set_address)
    app.add_post_transform(OwnLinks)
