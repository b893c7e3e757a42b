"""Properties that all interactive views share."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import ducklake_lab.widgets
from ducklake_lab.widgets.mounted import Mounted

for module in pkgutil.iter_modules(ducklake_lab.widgets.__path__, "ducklake_lab.widgets."):
    importlib.import_module(module.name)


@pytest.mark.parametrize("view", Mounted.__subclasses__(), ids=lambda view: view.__name__)
def test_what_may_be_absent_is_absent_at_first(view: type[Mounted]) -> None:
    own = {name: trait for name, trait in view.class_traits(sync=True).items() if name not in Mounted.class_traits()}
    assert own
    assert {name: trait.default() for name, trait in own.items() if trait.allow_none} == {
        name: None for name, trait in own.items() if trait.allow_none
    }
