"""Hooks of the documentation site (mkdocs.yml): pages from the root of the repository, and links to other files."""

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FROM_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
FIGURES = ROOT / "paper" / "figures"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace every folder in the navigation by its pages; leave out folders that do not exist."""
    config.nav = [item for item in map(_expanded, config.nav or []) if item]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from the root of the repository, and the figures that pages show."""
    for source, target in FROM_ROOT.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text()))
    for figure in sorted(FIGURES.rglob("*.svg")):
        files.append(File.generated(config, str(figure.relative_to(ROOT)), abs_src_path=str(figure)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Point links at the pages of the site; links to files that are not part of it become plain text."""
    names = {target: source for source, target in FROM_ROOT.items()}
    source = ROOT / names[page.file.src_uri] if page.file.src_uri in names else DOCS / page.file.src_uri

    def replace(match: re.Match[str]) -> str:
        image, text, target = match.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in path:
            return match[0]
        name = _name_in_site((source.parent / path).resolve())
        if files.get_file_from_path(name) is None:
            return f"{text}"
        relative = os.path.relpath(name, Path(page.file.src_uri).parent)
        return f"{image}[{text}]({relative}{'#' * bool(anchor)}{anchor})"

    return LINK.sub(replace, markdown)


def _name_in_site(path: Path) -> str:
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    return FROM_ROOT.get(name, name)


def _expanded(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    ((title, value),) = item.items()
    if isinstance(value, str) and value.endswith("/"):
        return {title: found} if (found := _pages(value)) else None
    return item


def _pages(folder: str) -> list[str]:
    """The pages of a folder; the page `undermargin` or `index` comes first."""
    found = sorted(
        (DOCS / folder).glob("*.md"), key=lambda path: (path.stem not in ("index", "undermargin"), path.stem)
    )
    return [path.relative_to(DOCS).as_posix() for path in found]
