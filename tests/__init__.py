"""The suite, in UTC on every machine: DuckDB takes the process's time zone when it is imported, after this."""

import os
import sys
import time

if "pytest" in sys.modules:  # programs that tests start have zones of their own
    os.environ["TZ"] = "UTC"
    time.tzset()
