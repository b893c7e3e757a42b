"""The suite, in UTC on every machine: DuckDB takes the process's time zone when it is imported, after this."""

import os
import time

os.environ["TZ"] = "UTC"
time.tzset()
