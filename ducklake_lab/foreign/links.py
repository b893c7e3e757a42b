"""Second names of files."""

from __future__ import annotations

import errno
import os
import shutil

#: Errors of a filesystem that has no link to a file there.
_NO_LINK = frozenset((errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS))


def link(source: str, target: str) -> bool:
    """Give a file a second name, and return whether it was possible: both are on one filesystem that has hard links.

    Raises:
        OSError: the file is not there, or the folder cannot be written to.
    """
    try:
        # of a symbolic link its target: it may go or lead elsewhere
        os.link(os.path.realpath(source), target)
    except OSError as error:
        if error.errno in _NO_LINK:
            return False
        raise
    return True


def link_or_copy(source: str, target: str) -> bool:
    """Give a file a second name, or copy it; return whether it is a name."""
    if link(source, target):
        return True
    shutil.copyfile(source, target)
    return False
