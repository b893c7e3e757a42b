from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ducklake_lab.model.quoting import path_parts, path_title, schema_path, split_dotted

_NAMES = st.text(st.sampled_from('a."B é'), min_size=1, max_size=5)


@given(st.lists(_NAMES, min_size=1, max_size=4))
def test_the_path_of_a_schema_is_read_back(names: list[str]) -> None:
    assert path_parts(schema_path(names)) == tuple(names)


@given(st.lists(_NAMES, min_size=2, max_size=4))
def test_the_title_of_a_nested_schema_is_read_back(names: list[str]) -> None:
    assert split_dotted(path_title(schema_path(names))) == tuple(names)


@given(_NAMES.filter(lambda name: not name.startswith('"')))
def test_the_name_of_any_other_is_itself(name: str) -> None:
    assert (schema_path([name]), path_parts(name), path_title(name)) == (name, (name,), name)


@pytest.mark.parametrize("text", ["a..b", ".a", "a.", '"a', 'a."b', ""])
def test_what_names_nothing(text: str) -> None:
    with pytest.raises(ValueError):
        split_dotted(text)
