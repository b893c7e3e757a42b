"""`ducklake-lab`: the command for lakes, for people at a terminal and for CI.

`command.py` reads the words and calls a command. The commands stand in one module for each family. They share options
(`arguments.py`), the lake and the snapshots that words name (`lakes.py`), and ways to print (`output.py`).
"""

from ducklake_lab.cli.command import main

__all__ = ["main"]
