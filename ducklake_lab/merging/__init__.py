"""Merges what one line of snapshots changed into a transaction: three versions of definitions and rows, by id.

`merge` plans and stages a lake, `definitions` merges a table's definition, `entries` schemas, views and macros, `versions`
compares rows and says what becomes of them, `rows` reads and stages these, `taking_over` takes whole files, `column_ids` and
`conflicts` hold the ids of both sides and the rules of users. A revert (ADR 90) and a branch (ADR 97) are merged by it.
"""
