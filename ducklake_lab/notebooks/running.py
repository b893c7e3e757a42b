"""Executes notebooks, also as of a snapshot of the lakes that they read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ducklake_lab.catalog import as_of
from ducklake_lab.errors import UsageError

#: Seconds that a cell may take.
TIMEOUT = 600


@dataclass(frozen=True, slots=True)
class Run:
    """A notebook that was executed as of a snapshot.

    Attributes:
        document: a copy of the notebook with its outputs, up to the first cell that failed.
        lakes: the id of the snapshot by the alias of each lake.
        error: the first line of a failed cell's error, or None.
    """

    document: Any
    lakes: Mapping[str, int]
    error: str | None


def read(path: Path) -> Any:
    """Reads a notebook.

    Raises:
        UsageError: it is none, or nbclient is not installed.
    """
    _needed()
    import nbformat

    try:
        return nbformat.read(path, as_version=4)
    except OSError as error:
        raise UsageError(f"The notebook {path} cannot be read: {error.strerror}.") from None
    except Exception as error:  # noqa: BLE001 - nbformat raises several kinds of errors for files that are none
        raise UsageError(f"{path} is no notebook: {str(error).strip().splitlines()[0][:200]}") from None


def write(document: Any, path: Path) -> None:
    """Writes a notebook, and signs it: JupyterLab strips styles from outputs that this user has not signed.

    Raises:
        UsageError: the file cannot be written.
    """
    import nbformat
    from nbformat.sign import NotebookNotary

    try:
        nbformat.write(document, path)
    except OSError as error:
        raise UsageError(f"The notebook cannot be written to {path}: {error.strerror}.") from None
    NotebookNotary().sign(nbformat.read(path, as_version=4))


def execute(
    document: Any,
    folder: Path,
    *,
    environment: Mapping[str, str] | None = None,
    kernel: str = "python3",
    timeout: int = TIMEOUT,
    on_cell: Callable[[Any], None] = lambda cell: None,
) -> str | None:
    """Executes a notebook in place, until a cell fails.

    Args:
        folder: where the kernel works.
        environment: variables of the kernel's environment, besides those of this process.
        kernel: the name of its kernel.
        timeout: seconds for each cell.
        on_cell: called with each executed cell.

    Returns:
        The first line of a failed cell's error; None if none failed.

    Raises:
        UsageError: nbclient, or the kernel, is not installed.
    """
    _needed()
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    client = NotebookClient(
        document,
        timeout=timeout,
        kernel_name=kernel,
        resources={"metadata": {"path": folder}},
        extra_arguments=["--log-level=ERROR"],
    )
    client.on_cell_executed = lambda cell, cell_index, **_: on_cell(cell)
    try:
        client.execute(env={**os.environ, **(environment or {})})
    except CellExecutionError as error:
        return f"{error.ename}: {str(error.evalue).strip().partition(chr(10))[0]}"
    except NoSuchKernel:
        raise UsageError(f'There is no kernel "{kernel}" here, which the notebook asks for.') from None
    except CellTimeoutError:
        return f"a cell took longer than {timeout} seconds"
    except DeadKernelError:
        return "the kernel died"
    return None


def run_as_of(path: Path, at: str, *, lake: str | None = None, timeout: int = TIMEOUT) -> Run:
    """Executes a copy of a notebook whose lakes are read as of a snapshot, and cannot be written.

    Args:
        at: the snapshot's id, a time or a tag.
        lake: the alias of the only lake that is read so; the others are as ever.

    Raises:
        UsageError: the notebook attached no such lake, so that nothing was read as of there.
    """
    document = read(path)
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "lakes"
        variables = {as_of.AS_OF: at, as_of.ONLY: lake or "", as_of.RECORD: str(noted)}
        kernel = str(document.metadata.get("kernelspec", {}).get("name") or "python3")
        error = execute(document, path.absolute().parent, environment=variables, kernel=kernel, timeout=timeout)
        lines = noted.read_text(encoding="utf-8").splitlines() if noted.exists() else []
    lakes = {alias: int(number) for number, _, alias in (line.partition(" ") for line in lines)}
    if error is None and not lakes:
        which = f'lake "{lake}"' if lake else "lake"
        raise UsageError(f"{path.name} attached no {which} with this package, so nothing was read as of {at}.")
    return Run(document, lakes, error)


def _needed() -> None:
    try:
        import nbclient  # noqa: F401
    except ImportError:
        raise UsageError('Executing notebooks needs nbclient; run: pip install "ducklake-lab[run]".') from None
