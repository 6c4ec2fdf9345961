"""Notices that files of a folder change, by inotify: names, contents and new folders, but not what editors and Python leave beside them.

    with Watch(folder) as watch:
        watch.wait()          # until something has changed and nothing more has for QUIET_SECONDS, MOST_SECONDS at most"""

from __future__ import annotations

import ctypes
import errno
import os
import pathlib
import select
import struct
import time
from types import TracebackType

QUIET_SECONDS = 0.2
MOST_SECONDS = 3.0           # of one burst of changes
MOST_FOLDERS = 4096
_GONE = 0x400 | 0x800         # delete_self, move_self
_CHANGED = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | _GONE  # modify, attrib, close_write, moved, create, delete
LOST_SECONDS = 0.2           # between two looks for a folder that is gone
_ONLY_FOLDERS, _IS_FOLDER, _OVERFLOW, _IGNORED = 0x01000000, 0x40000000, 0x4000, 0x8000
_EVENT = struct.Struct("iIII")
_LEFT_OUT = ("__pycache__", "node_modules")
_ENDINGS = ("~", ".pyc", ".swp", ".swx", ".tmp", ".part")


def is_of_interest(name: str) -> bool:
    return not name.startswith(".") and name not in _LEFT_OUT and not name.endswith(_ENDINGS) and name != "4913"


class Watch:
    """only: the one file that counts, by its name; None: all. OSError: it cannot be watched, and why.

    A folder that is deleted or renamed, and made anew at the same place (another branch, a generator), is a change when it is back."""

    def __init__(self, folder: pathlib.Path, only: str | None = None) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._only, self._folders = only, {}  # type: tuple[str | None, dict[int, pathlib.Path]]
        self._top, self._is_lost = folder, False
        self._fd = self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0:
            raise self._failed("inotify")
        try:
            self._add(folder)
        except BaseException:
            os.close(self._fd)
            raise

    def _failed(self, what: str) -> OSError:
        code = ctypes.get_errno()
        advice = {errno.ENOSPC: "this user watches as many folders as he may (fs.inotify.max_user_watches)",
                  errno.EMFILE: "this user has as many watches open as he may (fs.inotify.max_user_instances)"}.get(code, os.strerror(code))
        return OSError(code, f"{what} cannot be watched: {advice}")

    def _add(self, folder: pathlib.Path) -> None:
        """With all below. One that goes meanwhile is left out."""
        wanted = [folder]
        while wanted:
            at = wanted.pop()
            if len(self._folders) >= MOST_FOLDERS:
                raise OSError(errno.E2BIG, f"{folder} has more than {MOST_FOLDERS} folders; watch one with less in it")
            number = self._libc.inotify_add_watch(self._fd, os.fsencode(at), _CHANGED | _ONLY_FOLDERS)
            if number < 0:
                if ctypes.get_errno() in (errno.ENOENT, errno.ENOTDIR) and at != self._top:
                    continue
                raise self._failed(str(at))
            self._folders[number] = at
            if self._only is None:
                try:
                    with os.scandir(at) as entries:
                        wanted += [at / one.name for one in entries if is_of_interest(one.name) and one.is_dir(follow_symlinks=False)]
                except OSError:
                    continue

    def wait(self, timeout: float | None = None) -> bool:
        """Whether something changed within `timeout` seconds."""
        if not self._changed(timeout):
            return False
        end = time.monotonic() + MOST_SECONDS
        while time.monotonic() < end and self._changed(QUIET_SECONDS):
            pass
        return True

    def _changed(self, timeout: float | None) -> bool:
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else max(end - time.monotonic(), 0)
            if self._is_lost:
                left = LOST_SECONDS if left is None else min(left, LOST_SECONDS)
            if select.select([self._fd], [], [], left)[0] and self._take():
                return True
            if self._is_lost and self._find_again():
                return True
            if end is not None and time.monotonic() >= end:
                return False

    def _find_again(self) -> bool:
        try:
            self._add(self._top)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return False
            raise
        self._is_lost = False
        return True

    def _lose(self) -> None:
        """The folder at the top is elsewhere: what happens there is no change of what is deployed."""
        for number in self._folders:
            self._libc.inotify_rm_watch(self._fd, number)
        self._folders, self._is_lost = {}, True

    def _take(self) -> bool:
        """Of all that has come, whether anything is of interest."""
        try:
            data = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return False
        found, at = False, 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            name = os.fsdecode(data[at + _EVENT.size:at + _EVENT.size + length].rstrip(b"\0"))
            at += _EVENT.size + length
            if mask & _IGNORED:
                self._folders.pop(number, None)
                continue
            if mask & _OVERFLOW:
                found = True
                continue
            if number not in self._folders:  # of a watch that was given up
                continue
            if mask & _GONE and self._folders[number] == self._top:
                self._lose()
                continue
            if self._only is not None:
                found = found or name == self._only
                continue
            if not name or not is_of_interest(name):
                continue
            found = True
            if mask & _IS_FOLDER and mask & (0x100 | 0x80):
                self._add(self._folders[number] / name)
        return found

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._fd)
