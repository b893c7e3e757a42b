"""Doors to other table formats: Delta and Iceberg tables become tables of a lake, and the other way, without copies.

`delta_reading` and `iceberg_reading` make a `ForeignTable` of a version of a table, `taking` makes a lake's table of that.
`exporting` finds or writes the files of a lake's table, `delta_writing` and `iceberg_writing` list them (ADR 100).
"""
