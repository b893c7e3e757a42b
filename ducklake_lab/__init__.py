"""DuckLake Lab: a Jupyter workbench for DuckLake lakes. DuckDB works small data in process, Spark large data.

The import loads neither Spark nor pandas nor the notebook parts; each is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ducklake_lab import errors, hooks
from ducklake_lab.errors import *  # noqa: F403 - the whole tree is public
from ducklake_lab.version import __version__

if TYPE_CHECKING:
    from ducklake_lab.diff.answers import AnswerDiff
    from ducklake_lab.diff.diff import Diff
    from ducklake_lab.diff.lake import LakeDiff
    from ducklake_lab.session import Result, Session, TableHandle, connect, spark_catalog

_LAZY = {
    "AnswerDiff": "ducklake_lab.diff.answers",
    "Diff": "ducklake_lab.diff.diff",
    "LakeDiff": "ducklake_lab.diff.lake",
    "Result": "ducklake_lab.session",
    "Session": "ducklake_lab.session",
    "TableHandle": "ducklake_lab.session",
    "connect": "ducklake_lab.session",
    "spark_catalog": "ducklake_lab.session",
}

for _name, _target in {
    "display": "IPython.display:display",
    "output": "ducklake_lab.widgets.recorded:bundle",
    "agents.html": "ducklake_lab.widgets.agents:render",
    "agents.live": "ducklake_lab.widgets.agents:live",
    "result.grid": "ducklake_lab.widgets.grids:bundle",
    "result.html": "ducklake_lab.widgets.result:render",
    "result.text": "ducklake_lab.widgets.text:of_shell",
    "chart.html": "ducklake_lab.widgets.chart_view:render",
    "chart.plot": "ducklake_lab.plots.chart:plot",
    "conflicts.show": "ducklake_lab.widgets.conflicts:show",
    "diff.live": "ducklake_lab.widgets.diff_browser:live",
    "diff.html": "ducklake_lab.widgets.diff:render",
    "diff.page": "ducklake_lab.widgets.diff:document",
    "diff.picture": "ducklake_lab.widgets.diff:picture",
    "diff.plot": "ducklake_lab.plots.diff:plot",
    "lake_diff.html": "ducklake_lab.widgets.lake_diff:render",
    "lake_diff.page": "ducklake_lab.widgets.lake_diff:document",
    "review.live": "ducklake_lab.widgets.review_view:live",
    "review.html": "ducklake_lab.widgets.review:render",
    "review.page": "ducklake_lab.widgets.review:document",
    "review.markdown": "ducklake_lab.widgets.review:markdown",
    "history.html": "ducklake_lab.widgets.snapshots:render",
    "history.plot": "ducklake_lab.plots.history:plot",
    "files.html": "ducklake_lab.widgets.files:render",
    "files.plot": "ducklake_lab.plots.files:plot",
    "health.html": "ducklake_lab.widgets.health:render",
    "doctor.html": "ducklake_lab.widgets.doctor:render",
    "view.html": "ducklake_lab.widgets.table_view:render",
    "listing.html": "ducklake_lab.widgets.listing:render",
    "when.live": "ducklake_lab.widgets.when:live",
    "when.html": "ducklake_lab.widgets.when:render",
    "schema.html": "ducklake_lab.widgets.schema:render",
}.items():
    hooks.register(_name, _target)

__all__ = [
    "AnswerDiff",
    "Diff",
    "LakeDiff",
    "Result",
    "Session",
    "TableHandle",
    "__version__",
    "connect",
    "spark_catalog",
    *errors.__all__,
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(ipython: object) -> None:
    """`%load_ext ducklake_lab`: registers the magics."""
    import_module("ducklake_lab.magics").load(ipython)
