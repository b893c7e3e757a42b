"""Writes streams from Python workers; needs PySpark 4.1, which gives writers of streams Arrow batches."""

from __future__ import annotations

from pyspark.sql import datasource as ds

from ducklake_lab.datasource.writer import TableWriting, TaskFiles, files_of
from ducklake_lab.errors import SparkError
from ducklake_lab.transaction.batches import StreamBatch


class TableStreamWriter(TableWriting, ds.DataSourceStreamArrowWriter):
    """A stream, one snapshot for each micro-batch.

    The lake keeps the last batch of each query. A batch that is run again after a failure is recognised by that and
    left out.
    """

    def commit(self, messages: list[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commits a micro-batch, unless that has been done.

        Raises:
            SparkError: the tasks do not know which query they belong to.
        """
        query_ids = {message.query_id for message in messages if isinstance(message, TaskFiles)}
        if query_ids == {None}:
            self._remove(files_of(messages))
            raise SparkError(
                f"Spark names no query for its batch {batchId}; it was not committed, start the query again."
            )
        query_id = next(iter(query_ids), None)
        # without tasks there are no rows, and nothing that could be committed twice
        batch = StreamBatch(query_id, batchId, self._target.former_stream) if query_id is not None else None
        self._commit(messages, batch)

    def abort(self, messages: list[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Remove the files of tasks that wrote before another one failed."""
        self._abort(messages)
