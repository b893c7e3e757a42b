"""A medallion pipeline of customers in Spark SQL and DataFrames. It names a catalog, and nothing of the format behind it.

Files of JSON land in a folder. The bronze table keeps them as they came, by a stream. The silver table has each version of a
customer with the time in which it was valid (SCD2), by a stream whose batches are a MERGE. The gold table counts customers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LANDED = "id BIGINT, city STRING, tier STRING, spent DECIMAL(12,2), changed_at TIMESTAMP"

CREATE = (
    "CREATE NAMESPACE IF NOT EXISTS {catalog}.bronze",
    "CREATE NAMESPACE IF NOT EXISTS {catalog}.silver",
    "CREATE NAMESPACE IF NOT EXISTS {catalog}.gold",
    f"CREATE TABLE {{catalog}}.bronze.customers ({LANDED})",
    "CREATE TABLE {catalog}.silver.customers (id BIGINT, city STRING, tier STRING, spent DECIMAL(12,2), "
    "valid_from TIMESTAMP, valid_to TIMESTAMP, is_current BOOLEAN)",
)

#: A row without a merge key is the new version of a customer whose current version ends. A batch that runs again changes nothing.
MERGE = """
    MERGE INTO {catalog}.silver.customers AS t
    USING (
        WITH newest AS (
            SELECT id, city, tier, spent, changed_at
            FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY changed_at DESC) AS place FROM landed)
            WHERE place = 1
        ), changed AS (
            SELECT n.*
            FROM newest AS n JOIN {catalog}.silver.customers AS c ON n.id = c.id AND c.is_current
            WHERE n.changed_at > c.valid_from
                AND NOT (n.city <=> c.city AND n.tier <=> c.tier AND n.spent <=> c.spent)
        )
        SELECT id AS merge_key, * FROM newest
        UNION ALL
        SELECT CAST(NULL AS BIGINT) AS merge_key, * FROM changed
    ) AS s
    ON t.id = s.merge_key AND t.is_current
    WHEN MATCHED AND s.changed_at > t.valid_from
        AND NOT (s.city <=> t.city AND s.tier <=> t.tier AND s.spent <=> t.spent)
        THEN UPDATE SET is_current = false, valid_to = s.changed_at
    WHEN NOT MATCHED
        THEN INSERT (id, city, tier, spent, valid_from, valid_to, is_current)
        VALUES (s.id, s.city, s.tier, s.spent, s.changed_at, NULL, true)
"""

GOLD = """
    CREATE OR REPLACE TABLE {catalog}.gold.cities AS
    SELECT city, tier, count(*) AS customers, sum(spent) AS spent
    FROM {catalog}.silver.customers
    WHERE is_current
    GROUP BY city, tier
"""


class Medallion:
    """The pipeline in a catalog of a SparkSession.

    Args:
        landing: the folder in which files of JSON land.
        checkpoints: a folder for the checkpoints of both streams.
    """

    def __init__(self, spark: SparkSession, catalog: str, landing: Path, checkpoints: Path) -> None:
        self._spark = spark
        self._catalog = catalog
        self._landing = landing
        self._checkpoints = checkpoints

    def create(self) -> None:
        """Makes the namespaces and tables."""
        for text in CREATE:
            self._spark.sql(text.format(catalog=self._catalog))

    def bronze(self) -> None:
        """Loads the files that have landed."""
        rows = self._spark.readStream.schema(LANDED).json(str(self._landing))
        stream = rows.writeStream.option("checkpointLocation", f"{self._checkpoints}/bronze").trigger(availableNow=True)
        stream.toTable(f"{self._catalog}.bronze.customers").awaitTermination()

    def silver(self) -> list[float]:
        """Merges the new rows of bronze into silver; returns the seconds of each batch."""
        rows = self._spark.readStream.table(f"{self._catalog}.bronze.customers")
        stream = rows.writeStream.foreachBatch(self._merge).trigger(availableNow=True)
        query = stream.option("checkpointLocation", f"{self._checkpoints}/silver").start()
        query.awaitTermination()
        return [batch.durationMs["addBatch"] / 1000 for batch in query.recentProgress if batch.numInputRows]

    def gold(self) -> None:
        """Counts the current customers."""
        self._spark.sql(GOLD.format(catalog=self._catalog))

    def _merge(self, batch: DataFrame, number: int) -> None:
        batch.createOrReplaceTempView("landed")
        batch.sparkSession.sql(MERGE.format(catalog=self._catalog))
