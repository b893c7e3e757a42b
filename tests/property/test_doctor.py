"""Random histories of both clients leave lakes that the doctor calls healthy."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.memory import FOLDER
from tests.property.test_maintenance import Maintenance
from tests.property.test_reverts import Step, histories, run
from tests.reference import connect
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

#: Lakes of each part, which take seconds; DUCKLAKE_LAB_EXAMPLES makes it so many times as many.
_EXAMPLES = examples(40) * int(os.environ.get("DUCKLAKE_LAB_EXAMPLES", "1"))


@pytest.mark.parametrize("part", range(5))
@pytest.mark.timeout(1800)
@settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=histories(), deep=st.sampled_from([False, False, False, True]))
def test_a_whole_lake_is_healthy(steps: list[Step], deep: bool, part: int) -> None:
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


class Maintained(Maintenance):
    """Changes, maintenance, expiry and restores at random; the answers have a test of their own."""

    def every_snapshot_reads_as_it_was(self) -> None:
        pass

    def the_change_feed_leads_from_one_snapshot_to_the_next(self) -> None:
        pass

    def teardown(self) -> None:
        found = self.session.doctor(deep=True)
        super().teardown()
        assert not found.is_ill, [(one.check, one.object, one.finding) for one in found.findings]


Maintained.TestCase.settings = settings(
    max_examples=examples(40),
    stateful_step_count=15,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
TestMaintained = Maintained.TestCase
