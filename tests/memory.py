"""A folder in memory: what a test leaves is small and read at once, so nothing of it has to reach a disk."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 4 << 30

#: Where there is room in memory, else none, which is where Python puts temporary files.
FOLDER = _MEMORY if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM else None
