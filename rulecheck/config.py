"""Which files to check, and the settings that a project keeps in a file."""

from __future__ import annotations

import difflib
import os
import stat
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from rulecheck.errors import UserError

DEFAULT_PATH = "rules"
ROUNDINGS = ("lenient", "strict")
BACKENDS = ("cpu",)
CACHE_FOLDER = ".rulecheck_cache"


class Config(NamedTuple):
    """What a configuration file says. None means that it does not say."""

    source: str | None = None
    paths: tuple[str, ...] | None = None
    dialect: str | None = None
    backend: str | None = None
    rounding: str | None = None
    jobs: int | None = None
    cache: bool | None = None


def load(start: Path, explicit: str | None = None, *, isolated: bool = False) -> Config:
    """Return the configuration that holds in ``start``.

    Args:
        start: the folder from which the nearest file is searched, upwards.
        explicit: a file to read instead of searching.
        isolated: read no file at all.

    Raises:
        UserError: the file cannot be read, is no TOML, or has an unknown or ill-typed key.
    """
    if isolated:
        return Config()
    if explicit is not None:
        path = Path(explicit)
        table = _table(path, named=True)
        if table is None:
            raise UserError(f"{explicit}: no [tool.rulecheck] table", "add it, or drop --config")
        return _config(path, table)
    for folder in (start, *start.parents):
        for name in ("rulecheck.toml", "pyproject.toml"):
            path = folder / name
            table = _table(path, named=False)
            if table is not None:
                return _config(path, table)
    return Config()


def _table(path: Path, *, named: bool) -> dict[str, object] | None:
    """Return rulecheck's table of a TOML file; None if there is none (or no such file)."""
    try:
        data: dict[str, object] = tomllib.loads(path.read_bytes().decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        if named:
            raise UserError(f"{path}: no such file", _nearest(path)) from error
        return None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "make it a readable file") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 (byte {error.start})", "save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not TOML: {error}", "repair it, or pass --isolated") from error
    if path.name != "pyproject.toml":
        return data
    tool = data.get("tool")
    table = tool.get("rulecheck") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UserError(f"{path}: tool.rulecheck is not a table", "write [tool.rulecheck]")
    return table


def _config(path: Path, table: dict[str, object]) -> Config:
    """Check every key of ``table``; paths in it are relative to the file."""
    known = [name for name in Config._fields if name != "source"]
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(known)}"
            raise UserError(f"{path}: unknown key {key!r}", hint)
    paths = table.get("paths")
    if paths is not None:
        if not isinstance(paths, list) or not all(isinstance(item, str) for item in paths):
            raise UserError(f"{path}: paths is {paths!r}", 'write a list, paths = ["rules"]')
        paths = tuple(_relative(path.parent / item) for item in paths)
    jobs = table.get("jobs")
    if jobs is not None and (type(jobs) is not int or jobs < 1):
        raise UserError(f"{path}: jobs is {jobs!r}", "write a whole number from 1 up")
    cache = table.get("cache")
    if cache is not None and not isinstance(cache, bool):
        raise UserError(f"{path}: cache is {cache!r}", "write true or false")
    return Config(
        source=str(path),
        paths=paths,
        dialect=_string(path, table, "dialect"),
        backend=_string(path, table, "backend", BACKENDS),
        rounding=_string(path, table, "rounding", ROUNDINGS),
        jobs=jobs if isinstance(jobs, int) else None,
        cache=cache,
    )


def cache_folder(config: Config, start: Path) -> str:
    """Return the folder for answers of earlier runs, in the project's root; empty for none.

    Args:
        config: what holds; its file lies in the root.
        start: the root if no file was read.
    """
    if config.cache is False:
        return ""
    root = start if config.source is None else Path(config.source).parent
    return str(root / CACHE_FOLDER)


def _string(
    path: Path, table: dict[str, object], key: str, allowed: tuple[str, ...] = ()
) -> str | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise UserError(f"{path}: {key} is {value!r}", "write a string")
    if allowed and value not in allowed:
        raise UserError(f"{path}: {key} is {value!r}", f"write one of: {', '.join(allowed)}")
    return value


def _relative(path: Path) -> str:
    """Spell ``path`` from the current folder where that is shorter to read."""
    absolute = os.path.abspath(path)  # noqa: PTH100 -- resolve() would follow the user's symlinks
    here = os.path.relpath(absolute)
    return absolute if here.startswith(os.pardir + os.sep + os.pardir) else here


def find_rule_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the rule files that ``paths`` name, in order, each once.

    A file is taken whatever its name is; a folder is searched for ``*.egg``, sorted, without
    hidden folders and virtual environments.

    Raises:
        UserError: a path is missing, unreadable, or neither a file nor a folder.
    """
    found: dict[str, str] = {}
    for path in paths:
        for file in _expand(path):
            found.setdefault(os.path.realpath(file), file)
    return tuple(found.values())


def default_paths(config: Config) -> tuple[str, ...]:
    """Return the paths to check if the command line names none.

    Raises:
        UserError: nothing is configured and there is no folder ``rules``.
    """
    if config.paths is not None:
        return config.paths
    if Path(DEFAULT_PATH).is_dir():
        return (DEFAULT_PATH,)
    raise UserError(
        f"no PATH is given, no configuration has paths, and there is no folder {DEFAULT_PATH}/",
        "name a file or a folder: rulecheck check PATH",
    )


def _expand(path: str) -> list[str]:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 -- keeps the user's spelling, byte for byte
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(f"{path}: no such file or folder", _nearest(Path(path))) from error
    except (OSError, ValueError) as error:
        raise UserError(f"{path!r}: {error}", "name a readable file or folder") from error
    if stat.S_ISDIR(mode):
        return _walk(path)
    if not stat.S_ISREG(mode):
        # Opening a pipe or a device could wait for ever.
        raise UserError(f"{path}: not a regular file", "name a file or a folder")
    return [path]


def _walk(folder: str) -> list[str]:
    def refuse(error: OSError) -> None:
        raise UserError(f"{error.filename}: {error.strerror}", "make the folder readable")

    files: list[str] = []
    for base, folders, names in os.walk(folder, onerror=refuse):
        # `*.egg` folders and a virtual environment's own .egg files are Python's, not egglog's.
        folders[:] = sorted(name for name in folders if not _skipped(base, name))
        files += [
            os.path.join(base, name)  # noqa: PTH118 -- keeps the user's spelling of the folder
            for name in names
            if name.endswith(".egg") and (Path(base) / name).is_file()
        ]
    return sorted(files)


def _skipped(base: str, name: str) -> bool:
    return (
        name.startswith(".")
        or name in ("__pycache__", "node_modules")
        or (Path(base) / name / "pyvenv.cfg").is_file()
    )


def _nearest(path: Path) -> str:
    """Say which existing names are close to a missing one."""
    folder = path.parent
    while not folder.is_dir():
        path, folder = folder, folder.parent
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 -- names, not paths, are compared
    except OSError:
        names = []
    close = difflib.get_close_matches(path.name, names, 3, 0.6)
    if close:
        return "did you mean " + " or ".join(str(folder / name) for name in close) + "?"
    return f"{folder}/ exists and has no name like {path.name!r}"
