"""The built views are those of their sources, which pass their checks, and read what the kernel packs without a loss."""

from __future__ import annotations

import datetime
import decimal
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from ducklake_lab.widgets.arrow import pack
from hatch_build import jlpm, system_node
from tests.installed import ROOT

SOURCES = ROOT / "extensions" / "widgets"
#: Folders of the package with what is built, and the endings of the built files.
BUILT = {ROOT / "ducklake_lab" / "widgets" / "static": ("",), ROOT / "ducklake_lab" / "web" / "static": (".js",)}

pytestmark = pytest.mark.skipif(system_node() is None, reason="no Node 20.19 or newer on PATH")

#: Reads columns of a stream on standard input, as `{name: method}` says; integers beyond 2^53 are written as texts.
_READ = """
import { build } from 'esbuild';
import { readFileSync } from 'node:fs';
const { outputFiles } = await build({
  entryPoints: ['src/arrow/arrow-stream.ts'], bundle: true, format: 'esm', write: false
});
const module = 'data:text/javascript;base64,' + Buffer.from(outputFiles[0].contents).toString('base64');
const { ArrowStream } = await import(module);
const stream = new ArrowStream(new Uint8Array(readFileSync(0)));
const read = ([name, method]) => {
  try {
    return [name, stream[method](name)];
  } catch (error) {
    return [name, error.message];
  }
};
const columns = Object.entries(JSON.parse(process.argv[1])).map(read);
const found = { length: stream.length, ...Object.fromEntries(columns) };
process.stdout.write(JSON.stringify(found, (_, value) => typeof value === 'bigint' ? `${value}n` : value));
"""


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    jlpm(SOURCES, "install", "--immutable")


def read(stream: bytes, methods: dict[str, str]) -> dict[str, object]:
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", _READ, json.dumps(methods)],
        cwd=SOURCES,
        input=stream,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_the_committed_views_are_built_of_their_sources(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(len(BUILT))]
    for folder in folders:
        folder.mkdir()
    jlpm(SOURCES, "build", *map(str, folders))
    built = {path.name: path.read_bytes() for folder in folders for path in folder.iterdir()}
    committed = {
        path.name: path.read_bytes()
        for folder, endings in BUILT.items()
        for path in folder.iterdir()
        if path.name.endswith(endings)
    }
    assert sorted(committed) == sorted(built)
    differing = [name for name in built if built[name] != committed[name]]
    assert differing == [], "run `make widgets`, and commit what it builds"


def test_the_sources_pass_their_checks() -> None:
    jlpm(SOURCES, "lint")


def test_what_the_kernel_packs_is_read_without_a_loss() -> None:
    large = [2**53 + 1, -(2**63), 2**63 - 1, None, 0]
    stream = pack(
        {
            "int": ("int", [2**31 - 1, -(2**31), 0, None, 7]),
            "long": ("long", large),
            "float": ("float", [0.1, -1e300, None, 5e-324, 3.0]),
            "text": ("text", ["", None, "ü\x00🦆", "x" * 100_000, "NULL"]),
            "bool": ("bool", [True, False, None, True, False]),
        }
    )
    methods = {"int": "numbers", "long": "longs", "float": "numbers", "text": "texts", "bool": "booleans"}
    assert read(stream, methods) == {
        "length": 5,
        "int": [2**31 - 1, -(2**31), 0, None, 7],
        "long": [None if value is None else f"{value}n" for value in large],
        "float": [0.1, -1e300, None, 5e-324, 3.0],
        "text": ["", None, "ü\x00🦆", "x" * 100_000, "NULL"],
        "bool": [True, False, None, True, False],
    }


def test_no_rows_are_read() -> None:
    assert read(pack({"long": ("long", [])}), {"long": "longs"}) == {"length": 0, "long": []}


_OTHERS: Sequence[tuple[object, pa.DataType]] = [
    (decimal.Decimal("12345678901234567890.123"), pa.decimal128(38, 3)),
    (datetime.datetime(2024, 1, 1, 0, 0, 0, 123_456), pa.timestamp("us")),
    (datetime.date(2024, 1, 1), pa.date32()),
    (datetime.time(1, 2, 3, 456_789), pa.time64("us")),
    (2**64 - 1, pa.uint64()),
    (1, pa.int8()),
    (1.5, pa.float32()),
    (b"\x00\xff", pa.binary()),
    ([1, 2], pa.list_(pa.int64())),
    ({"a": 1}, pa.struct([("a", pa.int64())])),
    ([("k", 1)], pa.map_(pa.string(), pa.int64())),
    ("x", pa.dictionary(pa.int32(), pa.string())),
    (pa.MonthDayNano([1, 2, 3]), pa.month_day_nano_interval()),
]


@pytest.mark.parametrize("method", ["numbers", "longs", "texts", "booleans"])
def test_other_types_are_refused_and_never_rounded(method: str) -> None:
    """Values of a lake come as texts; a column of another type would be a mistake of ours."""
    names = [str(kind) for _, kind in _OTHERS]
    batch = pa.record_batch([pa.array([value], kind) for value, kind in _OTHERS], names=names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    found = read(bytes(sink.getvalue()), dict.fromkeys(names, method))
    assert found == {
        "length": 1,
        **{name: f"The kernel sent column {name} in another type; run the cell again." for name in names},
    }
