"""The generated parts of docs/architecture.md: layers, import graph and rooms."""

import ast
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
PACKAGE = "undermargin"
SOURCE = ROOT / "src" / PACKAGE

Edges = dict[str, set[str]]  # room -> rooms that it imports


def tables() -> dict[str, str]:
    """The parts of the page by the names of their markers."""
    edges = imports()
    return {"layers": _layers(edges), "graph": _graph(edges), "rooms": _rooms(edges)}


def imports() -> Edges:
    """Direct imports between rooms (the packages and modules directly below the root package)."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    edges: Edges = {room.removeprefix(f"{PACKAGE}."): set() for room in graph.find_children(PACKAGE)}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            importer, target = _room(module), _room(imported)
            if importer != target and importer and target:
                edges[importer].add(target)
    return edges


def reduced(edges: Edges) -> Edges:
    """The edges that are not implied by others: the transitive reduction of an acyclic graph."""
    return {
        room: {one for one in direct if not any(one in _below(other, edges) for other in direct - {one})}
        for room, direct in edges.items()
    }


def layers() -> list[list[str]]:
    """The layers of pyproject.toml, highest first, each a list of rooms; optional layers without parentheses."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (found,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip(" ()") for room in layer.split(":")] for layer in found]


def _below(room: str, edges: Edges) -> set[str]:
    found: set[str] = set()
    waiting = set(edges[room])
    while waiting:
        one = waiting.pop()
        found.add(one)
        waiting |= edges[one] - found
    return found


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _layers(edges: Edges) -> str:
    rows = [", ".join(room for room in layer if room in edges) for layer in layers()]
    return "```text\n" + "\n".join(row for row in rows if row) + "\n```\n"


def _graph(edges: Edges) -> str:
    lines = ["```mermaid", "flowchart TD"]
    for room, direct in sorted(reduced(edges).items()):
        lines += [f"    {room} --> {one}" for one in sorted(direct) if not room.startswith("_")]
    return "\n".join([*lines, "```"]) + "\n"


def _rooms(edges: Edges) -> str:
    lines = ["| room | contents | imports |", "|---|---|---|"]
    for room in (room for layer in layers() for room in layer if room in edges):
        lines.append(f"| `{room}` | {_contents(room)} | {', '.join(sorted(edges[room]))} |")
    return "\n".join(lines) + "\n"


def _contents(room: str) -> str:
    """The first paragraph of the room's docstring."""
    path = SOURCE / room / "__init__.py" if (SOURCE / room).is_dir() else SOURCE / f"{room}.py"
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")
