"""Which files make the documentation's site: pages stay where they are in the repository, so links work in both places.

A hook of MkDocs (`mkdocs.yml`). Pages are those of `docs/` and `paper/docs/`, and a few beside the code. What they link to
goes along.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = ("*.md", "docs/*.md", "paper/*.md", "paper/docs/*.md")
NOTES = "-notes.md"  # parts of pages, written by hand
TARGET = re.compile(r"\]\(([^)#:\s]+)")


def pages() -> list[Path]:
    return sorted(path for pattern in PAGES for path in ROOT.glob(pattern) if not path.name.endswith(NOTES))


def linked(page: Path) -> set[Path]:
    """The files of the repository that a page shows or links to."""
    targets = (page.parent / target for target in TARGET.findall(page.read_text(encoding="utf-8")))
    return {path.resolve() for path in targets if path.is_file()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace what lies in `docs/` by all pages and what they link to, under their paths in the repository."""
    wanted = set(pages()).union(*(linked(page) for page in pages()))
    paths = sorted(path.relative_to(ROOT).as_posix() for path in wanted)
    assets = [file for file in files if not (Path(config.docs_dir) / file.src_uri).exists()]  # of the plugins
    return Files([*assets, *(File(path, str(ROOT), config.site_dir, config.use_directory_urls) for path in paths)])
