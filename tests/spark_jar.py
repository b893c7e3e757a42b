"""The jar of the Spark catalog, built of the repository's sources."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

_BUILD = Path(__file__).parents[1] / "extensions" / "spark-catalog" / "build.py"


def builder() -> Any:
    """Returns the module that builds the jar."""
    spec = spec_from_file_location("spark_catalog_build", _BUILD)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
