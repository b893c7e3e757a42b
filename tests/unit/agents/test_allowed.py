"""The filter before the agents' door: an attacker's requests do not pass, ordinary ones do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ducklake_lab as dl
from ducklake_lab.agents.allowed import changing, reading
from ducklake_lab.agents.trees import Known
from ducklake_lab.errors import UsageError
from ducklake_lab.model.state import CatalogState
from tests.unit.agents.conftest import Prepared
from tests.unit.agents.hostile import CHANGES, READS

FINE = (
    """
SELECT * FROM orders
FROM orders
FROM lake.main.orders WHERE id > 3 ORDER BY id DESC LIMIT 5 OFFSET 1;
SELECT count(*), sum(id) AS s FROM main.orders GROUP BY ALL HAVING count(*) > 1
SELECT "id" FROM "orders" o WHERE o.name LIKE '%;--''%' AND name IS NOT NULL
WITH a AS (SELECT * FROM orders), b AS (FROM a) SELECT * FROM b JOIN a USING (id)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n
SELECT row_number() OVER (PARTITION BY name ORDER BY id) FROM orders QUALIFY row_number() OVER (ORDER BY id) < 3
SELECT list_transform([1, 2], lambda x: x + 1), {'a': 1}, [x FOR x IN [1, 2]], MAP {'k': 2}, (1, 2), id::VARCHAR FROM orders
SELECT CASE WHEN id > 3 THEN 'x' ELSE name END, coalesce(name, 'y'), extract(year FROM DATE '2020-01-01') FROM orders
SELECT /* a comment */ id -- another one; with a sign
SELECT * EXCLUDE (id) FROM orders UNION ALL SELECT 'x'
SELECT COLUMNS(*) FROM orders
SELECT * FROM range(3) r(i), generate_series(1, 2), unnest([1, 2])
SELECT * FROM orders AT (VERSION => 2)
SELECT * FROM lake.table_changes('orders', 1, 3)
SELECT * FROM lake.snapshots()
FROM orders PIVOT (count(*) FOR name IN ('n1', 'n2'))
VALUES (1, 'a'), (2, NULL)
DESCRIBE orders
DESCRIBE SELECT id FROM orders
SHOW TABLES
SELECT next FROM fine
SELECT twice(id) FROM orders
SELECT regexp_replace(name, '\\d+', 'x') FROM orders
""".replace("id -- another one; with a sign\n", "id -- another one; with a sign\\n FROM orders\n")
    .strip()
    .splitlines()
)

FINE_CHANGES = (
    """
INSERT INTO orders VALUES (1, 'a'), (2, DEFAULT)
INSERT INTO lake.main.orders (id) SELECT id FROM orders WHERE id > 3
INSERT INTO orders BY NAME SELECT 1 AS id
INSERT INTO orders WITH x AS (FROM orders) SELECT * FROM x
UPDATE orders SET name = upper_(name) WHERE id = 1
UPDATE orders AS o SET name = s.name, id = o.id + 1 FROM orders s WHERE o.id = s.id
DELETE FROM orders WHERE id IN (SELECT id FROM orders)
DELETE FROM orders o USING fine f WHERE o.id = f.next
TRUNCATE orders
TRUNCATE TABLE orders
MERGE INTO orders o USING (SELECT 1 AS id) s ON o.id = s.id WHEN MATCHED AND o.id > 0 THEN UPDATE SET name = 'x' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)
CREATE TABLE t (a INTEGER NOT NULL, b DECIMAL(10, 2) DEFAULT -1.5, c VARCHAR[] , d STRUCT(x INTEGER, y VARCHAR), e TIMESTAMP WITH TIME ZONE)
CREATE TABLE IF NOT EXISTS lake.nested.t AS SELECT * FROM orders
CREATE OR REPLACE TABLE orders AS SELECT 1 AS id
CREATE VIEW v (a) AS SELECT id FROM orders
CREATE SCHEMA IF NOT EXISTS s
DROP TABLE IF EXISTS orders
DROP VIEW fine
DROP SCHEMA nested
ALTER TABLE orders ADD COLUMN z INTEGER DEFAULT 3
ALTER TABLE orders DROP COLUMN name
ALTER TABLE orders RENAME name TO label
ALTER TABLE orders RENAME TO sales
ALTER TABLE orders ALTER id SET DATA TYPE BIGINT
ALTER TABLE orders ALTER COLUMN name SET NOT NULL
COMMENT ON TABLE orders IS 'sales of a day'
COMMENT ON COLUMN orders.name IS 'x'
""".replace("upper_(", "lower(")
    .strip()
    .splitlines()
)


@pytest.fixture(scope="module")
def known(prepared: Prepared) -> Iterator[Known]:
    with dl.connect(prepared.uri, "lake", read_only=True, engine="duckdb") as session:
        lake = session.current_lake

        def state_at(version: int) -> CatalogState:
            with lake.connect() as connection:
                return lake.state(connection, lake.snapshot(connection, version))

        yield Known("lake", lake.read_newest(), state_at=state_at)


def filled(text: str, prepared: Prepared) -> str:
    return text.replace("\\n", "\n").format(canary=prepared.canary, marker=prepared.marker)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", READS)
def test_a_hostile_query_does_not_pass(text: str, known: Known, prepared: Prepared) -> None:
    with pytest.raises(UsageError, match="This door refuses the statement"):
        reading(filled(text, prepared), known)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", [*CHANGES, *READS])
def test_a_hostile_change_does_not_pass(text: str, known: Known, prepared: Prepared) -> None:
    with pytest.raises(UsageError, match="This door refuses the statement"):
        changing(filled(text, prepared), known)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", [text for text in CHANGES if text != "SELECT 1"] + FINE_CHANGES)
def test_no_change_passes_as_a_query(text: str, known: Known, prepared: Prepared) -> None:
    with pytest.raises(UsageError):
        reading(text if "{" not in text else filled(text, prepared), known)


@pytest.mark.parametrize("text", FINE)
def test_an_ordinary_query_passes(text: str, known: Known) -> None:
    assert reading(text.replace("\\n", "\n"), known)


@pytest.mark.parametrize("text", FINE_CHANGES)
def test_an_ordinary_change_passes(text: str, known: Known) -> None:
    assert changing(text, known)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "NOT " * 20000 + "true",
        "SELECT " + "-" + " -" * 5000 + "1",
        "SELECT 1" + " + 1" * 20000,
        "SELECT '" + "x" * 200_000 + "'",
        "SELECT * FROM " + "(SELECT * FROM " * 50 + "'x'" + ")" * 50,
        "",
        ";",
        "--",
        "'",
        '"',
    ],
    ids=range(11),
)
def test_excess_is_refused(text: str, known: Known) -> None:
    with pytest.raises(UsageError, match="This door refuses"):
        reading(text, known)
