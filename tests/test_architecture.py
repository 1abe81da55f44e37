"""Who imports whom: the arrows that CONTRIBUTING.md draws, held."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Container, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "nbshm"
ROOMS = sorted(path.relative_to(ROOT) for path in PACKAGE.rglob("*.py"))

# A house may import what is listed, the plain rooms beside the houses apart.
HOUSES = {
    "bystanders": {"bystanders"},
    "definitions": {"definitions"},
    "failures": {"failures"},
    "machine": {"machine"},
    "memory": {"memory", "definitions", "machine", "wire"},
    "notebook": {"notebook", "definitions", "failures"},
    "packing": {"packing", "definitions", "memory", "notebook"},
    "plain": {"plain", "definitions", "memory", "notebook", "packing", "wire"},
    "processes": {"processes", "bystanders", "failures", "machine", "wire", "worker"},
    "views": {"views", "failures", "machine"},
    "wire": {"wire", "bystanders", "failures", "machine"},
    "worker": {"worker", "definitions", "failures", "machine", "memory", "notebook", "plain", "wire"},
}
# The floors of memory: each may import those named and itself, and these rooms of the house.
FLOORS = {
    "shared": set(),
    "ownership": {"shared"},
    "tensors": {"shared", "ownership", "buffers", "loading"},
}
# Houses of many rooms, which their `__init__.py` lists.
LISTED = ("definitions", "memory", "notebook", "packing", "processes", "runs", "worker")
# The story sees several houses, and no house sees it. Each part may import these of the others and itself.
STORY = {
    "extension": {"front", "session"},
    "front": {"front", "runs", "session"},
    "runs": {"runs", "session"},
    "session": {"runs.last", "runs.living"},
    "starting": {"extension", "runs", "session"},
}

FOREIGN = {
    "torch": {"memory/tensors", "worker", "failures/rank_errors", "session"},
    "numpy": {"memory"},
    "IPython": {"front/magics", "views", "worker"},
    "ipykernel": set(),
    "ipywidgets": {"views/live"},
    "cloudpickle": {"memory", "notebook/colormaps", "notebook/libraries", "definitions"},
}


def imports(room: Path, *, lazy: bool) -> Iterator[str]:
    """Yield the modules that a room imports; those for type checkers alone do not count."""
    waiting: list[ast.AST] = [ast.parse((ROOT / room).read_text())]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse):
                waiting += orelse
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not lazy:
                pass
            case _:
                waiting += ast.iter_child_nodes(node)


def house(path: str) -> str | None:
    return _first_of(HOUSES, path)


def part_of_the_story(path: str) -> str | None:
    return _first_of(STORY, path)


def _first_of(places: Container[str], path: str) -> str | None:
    first = path.split(".")[1] if path.startswith("nbshm.") else ""
    return first if first in places else None


def name(room: Path) -> str:
    return ".".join(room.with_suffix("").parts)


@pytest.mark.parametrize("house_name", HOUSES)
def test_arrows_between_houses_point_one_way(house_name: str) -> None:
    found = {
        f"{name(room)} imports {module}"
        for room in ROOMS
        if house(name(room)) == house_name
        for module in imports(room, lazy=True)
        if house(module) not in {None, *HOUSES[house_name]}
    }
    assert found == set()


def test_no_arrows_lead_from_a_house_back_to_it() -> None:
    TopologicalSorter({house_name: below - {house_name} for house_name, below in HOUSES.items()}).prepare()


def test_no_house_imports_the_story() -> None:
    found = {
        f"{name(room)} imports {module}"
        for room in ROOMS
        if house(name(room))
        for module in imports(room, lazy=True)
        if part_of_the_story(module)
    }
    assert found == set()


@pytest.mark.parametrize("part", STORY)
def test_arrows_within_the_story(part: str) -> None:
    found = {
        f"{name(room)} imports {module}"
        for room in ROOMS
        if part_of_the_story(name(room)) == part
        for module in imports(room, lazy=True)
        if part_of_the_story(module)
        if not any(f"{module}.".startswith(f"nbshm.{allowed}.") for allowed in STORY[part])
    }
    assert found == set()


@pytest.mark.parametrize("library", FOREIGN)
def test_each_foreign_library_has_these_rooms_and_no_others(library: str) -> None:
    allowed = FOREIGN[library]
    found = {
        name(room) for room in ROOMS for module in imports(room, lazy=True) if module.split(".")[0] == library
    }
    places = {"/".join(where.split(".")[1:]) for where in found}
    houses = {parent.as_posix() for place in places for parent in Path(place).parents}
    assert allowed <= places | houses
    strangers = {place for place in places if not allowed & {place, *map(Path.as_posix, Path(place).parents)}}
    assert strangers == set()


@pytest.mark.parametrize("floor", FLOORS)
def test_arrows_between_the_floors_of_memory_point_one_way(floor: str) -> None:
    allowed = {f"nbshm.memory.{place}" for place in (floor, *FLOORS[floor])}
    found = {
        f"{name(room)} imports {module}"
        for room in ROOMS
        if name(room).startswith(f"nbshm.memory.{floor}.")
        for module in imports(room, lazy=True)
        if house(module) == "memory" and ".".join(module.split(".")[:3]) not in allowed
    }
    assert found == set()


@pytest.mark.parametrize("house_name", LISTED)
def test_the_tables_of_a_house_have_each_of_its_rooms_once(house_name: str) -> None:
    tables = ast.get_docstring(ast.parse((PACKAGE / house_name / "__init__.py").read_text())) or ""
    listed = [
        room for line in tables.splitlines() for room in re.findall(r"`(\w+\.py)`", line.split(" | ")[0])
    ]
    assert sorted(listed) == sorted(path.name for path in (PACKAGE / house_name).glob("[!_]*.py"))


def test_loading_the_extension_imports_nothing_heavy() -> None:
    source = (
        "import IPython.core.interactiveshell, sys; before = set(sys.modules); import nbshm.extension\n"
        "print(sorted({name.split('.')[0] for name in sys.modules.keys() - before}))"
    )
    command = [sys.executable, "-c", source]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    imported = set(ast.literal_eval(text))
    assert "nbshm" in imported
    assert imported & {"torch", "numpy", "ipywidgets", "psutil", "pandas", "matplotlib"} == set()


def test_the_readme_has_the_table_of_options() -> None:
    from nbshm.option_table import markdown_table

    readme = (ROOT / "README.md").read_text()
    _, _, rest = readme.partition("<!-- options: begin -->\n")
    table, end, _ = rest.partition("<!-- options: end -->")
    assert end
    assert table.strip() == markdown_table()


def test_the_public_names_are_those_of_the_readme() -> None:
    import nbshm

    readme = (ROOT / "README.md").read_text()
    assert [public for public in nbshm.__all__ if public not in readme] == []
    assert dir(nbshm) == sorted(nbshm.__all__)
