"""The demo lake: the flights that left New York City in 2013, loaded month by month and then worked on.

Made with the public API only; `python -m ducklake_lab.demo --help` shows how.
"""
