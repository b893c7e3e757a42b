"""Access to the filesystems that hold data and delete files, for all rooms.

Paths are absolute local paths or URLs (`s3://bucket/key`), with `/` and without percent-encoding, as the catalog
stores them. Credentials of S3 are those that were granted for the path (object_access.py), else they come from where
pyarrow looks for them: environment variables, a profile, the machine's role.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyarrow import fs

from ducklake_lab.errors import DataFileError
from ducklake_lab.file_paths import is_local, is_object
from ducklake_lab.filesystems import resolve, saying
from ducklake_lab.parallel import in_parallel
from ducklake_lab.unfinished_uploads import abort_uploads

#: Files of one folder of an object store up to which each is asked for, in parallel, rather than the folder listed.
_FEW = 100
#: Files that one thread links at once.
_LINKS = 2_000
#: Bytes that are copied at once.
_PIECE = 8 << 20


def fault_of(files: Mapping[str, int | None], found: Mapping[str, int | None]) -> str | None:
    """Describe the first file that is missing or has another size, as the end of a sentence; None where all are right.

    Args:
        files: the bytes of each by its path; None where any size is right.
        found: as `Storage.sizes` gives it.
    """
    for path, size in files.items():
        there = found[path]
        if there is None:
            return f"the file {path}, which does not exist"
        if size is not None and size != there:
            return f"the file {path}, which has {there:,} bytes rather than {size:,}"
    return None


def _has_links(source: str, target: str) -> bool:
    """Return whether files of a folder can get further names in another one, without their whole paths."""
    return is_local(source) and is_local(target) and os.link in os.supports_dir_fd


def _link(source: str, target: str, names: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Give files of a folder further names in another one; return those that have none, as whole paths.

    Args:
        names: of each file in both folders.
    """
    refused = []
    with ExitStack() as stack:
        try:
            folders = []
            for folder in (source, target):
                folders.append(os.open(resolve(folder)[2] or "/", os.O_RDONLY | os.O_DIRECTORY))
                stack.callback(os.close, folders[-1])
        except OSError:
            return [(f"{source}/{old}", f"{target}/{new}") for old, new in names]
        above, below = folders
        for old, new in names:
            try:
                os.link(old, new, src_dir_fd=above, dst_dir_fd=below, follow_symlinks=False)
            except OSError:
                # whatever it is, it comes again and is said where files are taken one by one
                refused.append((f"{source}/{old}", f"{target}/{new}"))
    return refused


class Storage:
    """File operations on any path that pyarrow has a filesystem for.

    A refusal or silence of a filesystem is a `DataFileError` of one line that names the path.
    """

    def exists(self, path: str) -> bool:
        """Return whether a file or folder is there."""
        return bool(self._info(path).type != fs.FileType.NotFound)

    def size(self, path: str) -> int:
        """Bytes of a file.

        Raises:
            DataFileError: there is no such file.
        """
        info = self._info(path)
        if info.type != fs.FileType.File:
            raise DataFileError(f"The file {path} does not exist.")
        return int(info.size)

    def sizes(self, paths: Iterable[str], folder: str | None = None) -> dict[str, int | None]:
        """Bytes of each file, None where there is no such file; many of one folder of an object store by its listing.

        Args:
            folder: holds most of the files, in folders of its own too, and few others. It ends in `/`.
        """
        wanted = list(dict.fromkeys(paths))
        found: dict[str, int | None] = {}
        groups: dict[str, list[str]] = {}
        for path in wanted:
            if is_object(path):
                inside = folder is not None and path.startswith(folder)
                groups.setdefault(folder if inside and folder else path.rpartition("/")[0] + "/", []).append(path)
        listed = [group for group, inside in groups.items() if len(inside) > _FEW]
        for sizes in in_parallel(listed, lambda group: self._listed_sizes(group, recursive=group == folder)):
            found.update(sizes)
        # files that no listing has are asked for by name: a listing may spell them in another way
        rest = [path for path in wanted if path not in found]
        found.update(zip(rest, in_parallel(rest, self._size_or_none), strict=True))
        return {path: found[path] for path in wanted}

    def _listed_sizes(self, folder: str, *, recursive: bool) -> dict[str, int | None]:
        filesystem, prefix, inner = resolve(folder)
        with saying(folder, "listed"):
            infos = filesystem.get_file_info(
                fs.FileSelector(inner.rstrip("/"), allow_not_found=True, recursive=recursive)
            )
        return {prefix + info.path: info.size for info in infos if info.type == fs.FileType.File}

    def _size_or_none(self, path: str) -> int | None:
        if not is_local(path):
            info = self._info(path)
            return int(info.size) if info.type == fs.FileType.File else None
        with saying(path, "read"):
            try:
                found = os.stat(_local(path))
            except (FileNotFoundError, NotADirectoryError):
                return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def check_regular(self, paths: Iterable[str]) -> None:
        """Refuses local files that reading would wait for, or never come to the end of: pipes, devices, sockets.

        Raises:
            DataFileError: one is such a file; missing files and folders fail when they are read.
        """
        for path in paths:
            if is_local(path):
                try:
                    mode = os.stat(_local(path)).st_mode
                except OSError:
                    continue
                if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                    raise DataFileError(f"The file {path} is no regular file, but a pipe or a device; it is not read.")

    def list_files(self, folder: str) -> list[str]:
        """All files below a folder, sorted, as absolute paths or URLs; [] where there is no such folder.

        Symbolic links below it are neither listed nor followed.
        """
        _, prefix, _ = resolve(folder)
        return sorted(prefix + info.path for info in self._walk(folder))

    def listed_sizes(self, folder: str) -> dict[str, int]:
        """Bytes of all files below a folder, by their paths as the filesystem spells them.

        Symbolic links below it are neither listed nor followed.
        """
        _, prefix, _ = resolve(folder)
        return {prefix + info.path: int(info.size) for info in self._walk(folder)}

    def list_changed(self, folder: str) -> list[tuple[str, datetime]]:
        """All files below a folder, sorted, as paths relative to it, and when they were last changed (UTC).

        Symbolic links below it are neither listed nor followed.
        """
        filesystem, _, inner = resolve(folder)
        base = filesystem.normalize_path(inner.rstrip("/") or "/")
        return sorted(
            (info.path[len(base) :].lstrip("/"), info.mtime or datetime.now(UTC)) for info in self._walk(folder)
        )

    def _walk(self, folder: str) -> Iterator[fs.FileInfo]:
        """The files below a folder, in no order."""
        filesystem, _, inner = resolve(folder)
        local = is_local(folder)
        folders = [filesystem.normalize_path(inner.rstrip("/") or "/")]
        while folders:
            with saying(folder, "listed"):
                selector = fs.FileSelector(folders.pop(), recursive=not local, allow_not_found=True)
                infos = filesystem.get_file_info(selector)
            for info in infos:
                if local and os.path.islink(info.path):
                    continue
                if info.type == fs.FileType.File:
                    yield info
                elif local:
                    folders.append(info.path)

    @contextmanager
    def local_copy(self, path: str) -> Iterator[str]:
        """A file as one of this machine's, for readers that know no other: itself, or a copy for a while.

        Raises:
            DataFileError: there is no such file.
        """
        if is_local(path):
            self.size(path)
        with self.local_copies([path]) as places:
            yield places[path]

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files; those that are not there are no error.

        Raises:
            DataFileError: one cannot be deleted.
        """

        def remove(path: str) -> None:
            filesystem, _, inner = resolve(path)
            with saying(path, "deleted"), suppress(FileNotFoundError):
                filesystem.delete_file(inner)

        in_parallel(paths, remove)

    def discard(self, paths: Iterable[str]) -> None:
        """Delete the files of a failed write, as far as that is possible: the write's own error is shown.

        What stays belongs to no snapshot; `delete_orphaned_files` finds it. A store that refuses one is not asked for the
        others: where it does not answer, each would have to be waited for.
        """
        with suppress(DataFileError):
            self.delete(paths)

    def delete_folder(self, folder: str) -> None:
        """Deletes a folder with all that is in it; one that is not there is no error."""
        filesystem, _, inner = resolve(folder)
        with saying(folder, "deleted"):
            if filesystem.get_file_info(inner.rstrip("/")).type == fs.FileType.Directory:
                filesystem.delete_dir(inner.rstrip("/"))

    def discard_folder(self, folder: str) -> None:
        """Deletes the folder of a failed write, as `discard` does files."""
        with suppress(DataFileError):
            self.delete_folder(folder)

    def move(self, source: str, target: str) -> None:
        """Moves a file within one filesystem, making the folders it goes to."""
        filesystem, _, inner = resolve(source)
        _, _, inner_target = resolve(target)
        parent = inner_target.rpartition("/")[0]
        with saying(target, "written"):
            if parent and is_local(target):
                filesystem.create_dir(parent, recursive=True)
            filesystem.move(inner, inner_target)

    def duplicate(self, source: str, target: str) -> None:
        """Gives a file a second name that lives on without the first: a link, or a copy where there are none."""
        self.duplicate_all({target: source})

    def duplicate_all(self, files: Mapping[str, str], *, link: bool = True) -> None:
        """Gives files a second name each, as `duplicate` does; sources by targets.

        Args:
            link: False copies each file.

        Raises:
            DataFileError: a source is not there, or a target cannot be made.
        """
        folders: dict[tuple[str, str], dict[str, str]] = {}
        for target, source in files.items():
            (above, _, new), (below, _, old) = target.rpartition("/"), source.rpartition("/")
            folders.setdefault((below, above), {})[new] = old
        self.duplicate_folders(folders, link=link)

    def duplicate_folders(self, folders: Mapping[tuple[str, str], Mapping[str, str]], *, link: bool = True) -> None:
        """Gives files a second name each, as `duplicate_all` does.

        Args:
            folders: names of files, each with its name in the source's folder, by the folders of source and target.
        """
        for above in {above for _, above in folders}:
            self.make_folder(above)
        left: list[tuple[str, str]] = []
        batches: list[tuple[str, str, list[tuple[str, str]]]] = []
        for (source, above), names in folders.items():
            pairs = [(old, new) for new, old in names.items()]
            if link and _has_links(source, above):
                batches += [(source, above, pairs[at : at + _LINKS]) for at in range(0, len(pairs), _LINKS)]
            else:
                left += [(f"{source}/{old}", f"{above}/{new}") for old, new in pairs]
        for refused in in_parallel(batches, lambda batch: _link(*batch)):
            left += refused
        in_parallel(left, lambda pair: self._duplicate(*pair, link=link))

    @staticmethod
    def _duplicate(source: str, target: str, *, link: bool) -> None:
        filesystem, _, inner = resolve(source)
        _, _, inner_target = resolve(target)
        with saying(target, "written"):
            if link and is_local(target):
                try:
                    os.link(inner, inner_target)
                    return
                except FileExistsError:
                    raise  # maybe a link to the source, which a copy would empty
                except OSError:
                    pass  # another filesystem, or one without links
            filesystem.copy_file(inner, inner_target)

    def make_folder(self, path: str) -> None:
        """Makes a folder and those above it; it may be there already. Object stores need none."""
        if is_object(path):
            return
        filesystem, _, inner = resolve(path)
        with saying(path, "made"):
            filesystem.create_dir(inner.rstrip("/"), recursive=True)

    @contextmanager
    def open_input(self, path: str) -> Iterator[pa.NativeFile]:
        """Opens a file for reading at any position while the block runs.

        Raises:
            DataFileError: there is no such file, it is no regular one, or it cannot be read.
        """
        self.check_regular([path])
        filesystem, _, inner = resolve(path)
        with saying(path, "read"), filesystem.open_input_file(inner) as source:
            yield source

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """Opens a new file for writing while the block runs; its folder must exist. Nothing stays of a failure.

        Raises:
            DataFileError: it cannot be written, or the store refuses it in the end.
        """
        with self._writing(path, is_new=True) as sink:
            yield sink

    def upload(self, source: str, path: str, *, is_new: bool = True) -> None:
        """Copies a file of this machine to a path or URL.

        Args:
            is_new: there is no file at the path, and none stays there of a failure. Otherwise one may be replaced.

        Raises:
            DataFileError: it cannot be written, or the store refuses it in the end.
        """
        with self._writing(path, is_new=is_new) as sink, open(source, "rb") as rows:
            while piece := rows.read(_PIECE):
                sink.write(piece)

    @contextmanager
    def _writing(self, path: str, *, is_new: bool) -> Iterator[pa.NativeFile]:
        """A stream that is closed in the end, also after a failure: some stores say only then that they refuse the file."""
        filesystem, _, inner = resolve(path)
        with saying(path, "written"), _aborting(path, is_new=is_new):
            sink = filesystem.open_output_stream(inner)
            try:
                try:
                    yield sink
                except BaseException:
                    with suppress(OSError):
                        sink.close()
                    raise
                sink.close()
            except BaseException as error:
                # a store that refuses a file keeps the earlier one; others have made a file of the bytes written so far
                if is_new or not isinstance(error, OSError):
                    self.discard([path])
                raise

    @contextmanager
    def local_copies(self, paths: Iterable[str]) -> Iterator[Mapping[str, str]]:
        """Yield a readable local path for each file while the block runs: in its place, or as a copy.

        Raises:
            DataFileError: there is no such file, or it cannot be read.
        """
        wanted = list(dict.fromkeys(paths))
        remote = [path for path in wanted if not is_local(path)]
        places = {path: _local(path) for path in wanted}
        if not remote:
            yield places
            return
        with TemporaryDirectory(prefix="ducklake-") as folder:
            places.update({path: f"{folder}/{number}-{path.rsplit('/', 1)[-1]}" for number, path in enumerate(remote)})

            def fetch(path: str) -> None:
                with self.open_input(path) as source, open(places[path], "wb") as target:
                    size = source.size()
                    source.download(target)
                    came = target.tell()
                if came != size:
                    raise DataFileError(f"The file {path} cannot be read: {came:,} of its {size:,} bytes came.")

            in_parallel(remote, fetch)
            yield places

    def _info(self, path: str) -> fs.FileInfo:
        filesystem, _, inner = resolve(path)
        with saying(path, "read"):
            return filesystem.get_file_info(inner.rstrip("/") or "/")


@contextmanager
def _aborting(path: str, *, is_new: bool) -> Iterator[None]:
    """Leaves no parts of a file that fails; one whose name the user gave may be another client's upload as well."""
    try:
        yield
    except BaseException:
        if is_new:
            abort_uploads(path)
        raise


def _local(path: str) -> str:
    return path.removeprefix("file://")
