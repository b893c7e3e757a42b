"""Where the catalogs and files of branches are."""

from __future__ import annotations

from dataclasses import replace

from ducklake_lab.catalog.branches.branch import Branch, place_of
from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.errors import UnsupportedFeatureError

#: The end of the names of folders that hold branches.
_SUFFIX = ".branches"
#: Part of the names of schemas and databases, before the branch's.
_NAMED = "branches_"
#: Bytes of the longest name of a schema in PostgreSQL, and of a database in MySQL.
_LONGEST = {"postgresql": 63, "mysql": 64}


def catalog_of(root: CatalogLocation, name: str, generation: int = 0) -> CatalogLocation:
    """Return the location of a branch's catalog: a file beside the lake's, a schema, or a database.

    Args:
        generation: as of `Branch`.

    Raises:
        UnsupportedFeatureError: the database has no place of that name.
    """
    folded = place_of(name, generation)
    display = f"{root.display}#{name}"
    if root.path is not None:
        path = root.path.with_name(root.path.name + _SUFFIX) / f"{folded}{root.path.suffix or '.ducklake'}"
        url = root.url.set(database=str(path))
        return replace(root, url=url, path=path, schema=None, display=display)
    base = (root.url.database if root.backend == "mysql" else root.schema) or ""
    place = f"{base}{_separator(base)}{folded}"
    if len(place.encode()) > _LONGEST.get(root.backend, len(place.encode())):
        raise UnsupportedFeatureError(
            f"The branch {name} needs a shorter name: {place} is too long for {root.backend}."
        )
    if root.backend == "mysql":
        return replace(root, url=root.url.set(database=place), display=display)
    return replace(root, schema=place, display=display)


def root_of(location: CatalogLocation, branch: Branch) -> CatalogLocation:
    """Return the location of the catalog of the lake that a branch belongs to; `catalog_of` inverted."""
    display = location.display.removesuffix(f"#{branch.name}")
    if location.path is not None:
        folder = location.path.parent
        path = folder.with_name(folder.name.removesuffix(_SUFFIX))
        return replace(location, url=location.url.set(database=str(path)), path=path, display=display)
    place = (location.url.database if location.backend == "mysql" else location.schema) or ""
    base = place.removesuffix(branch.place).removesuffix(_NAMED).removesuffix("_")
    if location.backend == "mysql":
        return replace(location, url=location.url.set(database=base), display=display)
    return replace(location, schema=base or None, display=display)


def _separator(base: str) -> str:
    return f"_{_NAMED}" if base else _NAMED


def files_of(root_data_path: str, name: str, generation: int = 0) -> str:
    """Return the folder of a branch's files, ending in `/`: beside the lake's, on the same filesystem.

    Args:
        generation: as of `Branch`.

    Raises:
        UnsupportedFeatureError: the lake's data path is a whole bucket.
    """
    folder = root_data_path.rstrip("/")
    _, _, inner = folder.rpartition("://")
    if "/" not in inner:
        raise UnsupportedFeatureError(
            f"Branches of a lake whose data path is {root_data_path} are not supported; it has no folder beside it."
        )
    return f"{folder}{_SUFFIX}/{place_of(name, generation)}/"


def could_be_branch(location: CatalogLocation) -> bool:
    """Whether a catalog is where those of branches are."""
    if location.path is not None:
        return location.path.parent.name.endswith(_SUFFIX)
    place = location.url.database if location.backend == "mysql" else location.schema
    return _NAMED in (place or "")
