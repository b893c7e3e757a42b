"""Random histories of both clients leave lakes that the doctor calls healthy."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.memory import FOLDER
from tests.property.test_reverts import Step, histories, run
from tests.reference import connect
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")


@settings(max_examples=examples(1000), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=histories(), deep=st.sampled_from([False, False, False, True]))
def test_a_whole_lake_is_healthy(steps: list[Step], deep: bool) -> None:
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    reference = connect()
    try:
        run(steps, folder, reference)
        with dl.connect(f"ducklake:{folder}/lake.ducklake", "lake", engine="duckdb") as session:
            found = session.doctor(deep=deep)
            assert not found.is_ill, [(one.check, one.object, one.finding) for one in found.findings]
            assert not [one for one in session.repair("all").repaired if one.finding.severity != "info"]
    finally:
        reference.close()
        shutil.rmtree(folder, ignore_errors=True)
