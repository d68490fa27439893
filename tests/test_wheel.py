"""The wheel itself, installed into an environment of its own: nothing is missing from it, and it trains and fills.

What TameDiT depends on is not installed again: the new environment sees the running one's packages, after its own. A path in a
.pth file does not run the .pth files that lie there, so an editable install of this tree is out of sight.
"""

import ast
import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pandas as pd
import pytest

import tamedit

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tamedit"


def checked(*command: object, **settings: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, **settings)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that no `build` folder of earlier days gets into it and none is left behind."""
    place = tmp_path_factory.mktemp("wheel")
    (source := place / "source").mkdir()
    shutil.copytree(PACKAGE, source / "src" / "tamedit", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    checked(*pip, "--wheel-dir", place, source)
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def commands(wheel: Path) -> Path:
    """The folder of the commands of an environment that has the wheel."""
    environment = wheel.parent / "environment"
    checked(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps")
    checked(*pip, wheel)
    (own,) = environment.glob("lib/python*/site-packages")
    paths = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (own / "running-environment.pth").write_text("".join(f"{path}\n" for path in paths))
    return python.parent


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    expected = {
        path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"tamedit/py.typed", "tamedit/shipped/homes/model.safetensors"} < set(expected)
    with zipfile.ZipFile(wheel) as archive:
        found = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert found == expected


# Adapters for a package that the user has already, and what those or other declared packages bring.
NOT_OURS = {"opacus", "pypots", "huggingface_hub"}
BROUGHT = {"starlette": "fastapi", "markupsafe": "jinja2", "click": "typer", "absl": "dp-accounting"}


def test_the_wheel_declares_every_package_that_it_imports(wheel: Path) -> None:
    """Also those imported inside of functions: each is a dependency, or one of an extra, or comes with one of them."""
    with zipfile.ZipFile(wheel) as archive:
        (place,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(place))
        sources = {name: archive.read(name) for name in archive.namelist() if name.endswith(".py")}
    every, needed = set(), set()
    for line in metadata.get_all("Requires-Dist") or []:
        name = re.match(r"[A-Za-z0-9._-]+", line)
        assert name
        plain = re.sub(r"[-_.]+", "-", name[0].lower())
        needed |= {plain} if "extra ==" not in line else set()
        every |= {plain} if "extra == 'dev'" not in line.replace('"', "'") else set()
    for path, source in sources.items():
        tree = ast.parse(source)
        for node in ast.walk(tree):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for top in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"tamedit", ""}:
                package = BROUGHT.get(top, re.sub(r"[-_.]+", "-", top.lower()))
                assert package in every or top in NOT_OURS, f"{path} imports {top}, which the wheel does not declare"
                optional = any(part in path for part in ("/adapters/", "/serve/")) or node not in tree.body
                assert package in needed or optional or top in NOT_OURS, (
                    f"{path} imports {top} always, but it is an extra"
                )


def test_the_wheel_trains_and_fills_where_the_source_is_out_of_sight(commands: Path, tmp_path: Path) -> None:
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TAMEDIT"))}
    settings = {"cwd": tmp_path, "env": outside | {"OMP_NUM_THREADS": "1"}}
    where = "import tamedit, importlib.metadata as m; print(tamedit.__file__, m.version('tamedit'), sep='\\n')"
    imported, version = checked(commands / "python", "-c", where, **settings).splitlines()
    assert Path(imported).is_relative_to(commands.parent)
    command = commands / "tamedit"
    assert checked(command, "--version", **settings) == f"tamedit {version}\n" == f"tamedit {tamedit.__version__}\n"

    checked(command, "data", "simulate", "--hours", 600, "--out", "home.csv", **settings)
    home = pd.read_csv(tmp_path / "home.csv", index_col=0)
    home.iloc[400:420, 0] = float("nan")
    home.to_csv(tmp_path / "home.csv")
    shipped = ("--init", "homes", "--tuning", "head")  # reads the model that ships with the package
    checked(command, "train", "home.csv", "--out", "run", "--scale", "smoke", "--steps", 2, *shipped, **settings)
    checked(command, "impute", "run", "home.csv", "--samples", 5, "--out", "filled.csv", **settings)
    filled = pd.read_csv(tmp_path / "filled.csv", index_col=0)
    assert filled.notna().all(axis=None)
    assert len(filled) == 600
    known = home["kwh"].notna()
    assert not known[400:420].any()
    assert filled["kwh"][known].to_numpy() == pytest.approx(home["kwh"][known].to_numpy())
