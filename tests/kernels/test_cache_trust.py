"""Compiled kernels that another user could have written: such a file is a miss, such a directory is not used."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.cubins import OPTIONS, age, ask, empty_cache, file_size, kernel_of, key, never, path_of

from tilearray.commands.main import main
from tilearray_cuda.kernels import cubin
from tilearray_cuda.kernels import disk_cache as cache
from tilearray_cuda.kernels.disk_cache import CacheWarning, CubinCache, Statistics

Fresh = Callable[..., CubinCache]
Output = pytest.CaptureFixture[str]
STRANGER = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def compiles(kept: CubinCache, source: str) -> bool:
    """Return whether a kernel on disk is compiled again. This gives no warning: only the file is refused."""
    before = kept.statistics().compiles
    assert ask(kept, source) == kernel_of(source)
    return kept.statistics().compiles > before


def warning_of(kept: CubinCache, *sources: str) -> str:
    """Return the only warning of several compilations; check that no kernel is kept on disk."""
    files = sorted(kept.directory.iterdir()) if kept.directory.exists() else []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [ask(kept, source) for source in sources] == [kernel_of(source) for source in sources]
    assert [warning.category for warning in caught] == [CacheWarning]
    assert kept.statistics() == Statistics(0, 0, len(sources), 0)
    assert [kept.load_or_compile(source, 90, OPTIONS, "", never) for source in sources]
    assert (sorted(kept.directory.iterdir()) if kept.directory.exists() else []) == files
    return str(caught[0].message)


@pytest.mark.usefixtures("no_umask")
def test_directories_and_files_belong_to_this_user_alone_for_every_umask(tmp_path: Path):
    tmp_path.chmod(0o700)
    kept = CubinCache(tmp_path / "above" / "cubins")
    ask(kept, "a")
    assert (mode(tmp_path / "above"), mode(kept.directory), mode(path_of(kept, "a"))) == (0o700, 0o700, 0o600)


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0o620, 0o602, 0o666, 0o777], ids=oct)
def test_a_file_that_others_can_write_is_replaced(fresh: Fresh, bits: int):
    ask(fresh(), "a")
    path_of(fresh(), "a").chmod(bits)
    assert fresh().lookup(key("a")) is None
    assert compiles(fresh(), "a")
    assert mode(path_of(fresh(), "a")) == 0o600
    assert not compiles(fresh(), "a")


@needs_root
def test_a_file_of_another_user_is_replaced(fresh: Fresh):
    kept = fresh()
    ask(kept, "a")
    planted = kernel_of("another kernel")
    path_of(kept, "a").write_bytes(cubin.pack(key("a"), 90, planted))
    assert fresh().lookup(key("a")) == planted  # root's: the file is valid
    os.chown(path_of(kept, "a"), STRANGER, -1)
    assert fresh().lookup(key("a")) is None
    assert compiles(fresh(), "a")
    assert path_of(kept, "a").stat().st_uid == 0
    assert fresh().lookup(key("a")) == kernel_of("a")


def test_a_link_to_a_valid_file_is_a_miss(fresh: Fresh, tmp_path: Path):
    kept = fresh()
    ask(kept, "a")
    path_of(kept, "a").rename(tmp_path / "elsewhere")
    path_of(kept, "a").symlink_to(tmp_path / "elsewhere")
    assert fresh().lookup(key("a")) is None


def test_the_open_file_is_checked(fresh: Fresh, monkeypatch: pytest.MonkeyPatch):
    """A file that replaces the opened file must not pass the check for it."""
    kept = fresh()
    ask(kept, "a")
    path, good = path_of(kept, "a"), path_of(kept, "a").read_bytes()
    path.chmod(0o666)

    def exchanging(name: str) -> object:
        file = cubin.open_file(name)
        path.unlink()
        path.write_bytes(good)
        path.chmod(0o600)
        return file

    monkeypatch.setattr(cache, "open_file", exchanging)
    assert fresh().lookup(key("a")) is None


# --- directories ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o777, 0o1777], ids=oct)
def test_a_directory_that_others_can_write_is_not_used_and_reported_once(fresh: Fresh, bits: int):
    ask(fresh(), "a")
    kept = fresh()
    kept.directory.chmod(bits)
    message = warning_of(kept, "a", "b", "c")
    folder = str(kept.directory)
    assert message == (
        f"load_or_compile: expected a kernel directory where no other user can write, got {folder!r},"
        f" where mode {bits:o} lets others write; run: chmod go-w {folder!r}. Kernels there are not used, and new"
        " kernels are not stored: each process compiles its own. If you cannot change this, name another directory in"
        " TILEARRAY_CACHE_DIR; TILEARRAY_CACHE_SIZE=0 keeps kernels in memory and is silent"
    )
    kept.directory.chmod(0o700)
    assert not compiles(fresh(), "a")


@needs_root
def test_a_directory_of_another_user_is_not_used(fresh: Fresh):
    ask(fresh(), "a")
    kept = fresh()
    os.chown(kept.directory, STRANGER, -1)
    assert f"where {str(kept.directory)!r} belongs to user {STRANGER}. " in warning_of(kept, "a", "b")


@needs_root
def test_other_users_use_a_directory_of_root_that_they_can_only_read(fresh: Fresh, monkeypatch: pytest.MonkeyPatch):
    """A warm cache in a container image."""
    ask(fresh(), "a")
    kept = fresh()
    kept.directory.chmod(0o755)
    path_of(kept, "a").chmod(0o644)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not compiles(fresh(), "a")
    kept.directory.chmod(0o555)
    assert not compiles(fresh(), "a")
    os.chown(path_of(kept, "a"), 1001, -1)
    assert fresh().lookup(key("a")) is None


def test_a_folder_above_where_every_user_can_rename_is_refused(tmp_path: Path):
    above = tmp_path / "above"
    above.mkdir()
    ask(CubinCache(above / "folder" / "cubins"), "a")
    above.chmod(0o777)
    for kept in (CubinCache(above / "folder" / "cubins"), CubinCache(above / "not there")):
        message = warning_of(kept, "a", "b")
        assert f"every user can rename the entries of {str(above)!r}; run: chmod o-w {str(above)!r}" in message
    above.chmod(0o1777)
    assert not compiles(CubinCache(above / "folder" / "cubins"), "a")
    above.chmod(0o775)
    assert not compiles(CubinCache(above / "folder" / "cubins"), "a")


@needs_root
def test_an_entry_of_another_user_in_a_shared_folder_on_the_path_is_refused(tmp_path: Path):
    shared, mine = tmp_path / "shared", tmp_path / "mine"
    shared.mkdir()
    shared.chmod(0o1777)
    ask(CubinCache(mine / "cubins"), "a")
    (shared / "link").symlink_to(mine)
    assert not compiles(CubinCache(shared / "link" / "cubins"), "a")  # our own link
    os.chown(shared / "link", STRANGER, -1, follow_symlinks=False)
    message = warning_of(CubinCache(shared / "link" / "cubins"), "a")
    link = str(shared / "link")
    assert f"{link!r} belongs to user {STRANGER}, and every user can write in {str(shared)!r}" in message
    (shared / "folder").mkdir()
    os.chown(shared / "folder", STRANGER, -1)
    assert f"{str(shared / 'folder')!r} belongs to user" in warning_of(CubinCache(shared / "folder" / "cubins"), "a")


@pytest.mark.parametrize("target", ["{}/real/../real", "../{name}/real", "other"])
def test_our_own_links_are_followed(tmp_path: Path, target: str):
    (tmp_path / "real").mkdir()
    (tmp_path / "other").symlink_to("real")
    (tmp_path / "link").symlink_to(target.format(tmp_path, name=tmp_path.name))
    ask(CubinCache(tmp_path / "link" / "cubins"), "a")
    assert not compiles(CubinCache(tmp_path / "real" / "cubins"), "a")
    assert not compiles(CubinCache(tmp_path / "link" / "cubins"), "a")
    (tmp_path / "real").chmod(0o777)
    assert "chmod o-w" in warning_of(CubinCache(tmp_path / "link" / "cubins"), "a")


def test_nothing_is_checked_where_users_have_no_numbers(fresh: Fresh, monkeypatch: pytest.MonkeyPatch):
    ask(fresh(), "a")
    fresh().directory.chmod(0o777)
    monkeypatch.delattr(os, "geteuid")
    assert not compiles(fresh(), "a")


# --- the command ----------------------------------------------------------------------------------------------------


def test_list_prints_labels_without_their_escape_sequences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
):
    empty_cache(tmp_path / "cubins", monkeypatch)
    label = "add\x1b]0;title\x07\x1b[2J\r\n\u202e\ud800 float32"
    cache.load_or_compile("a", 90, OPTIONS, label, lambda: kernel_of("a"))
    assert main(["cache", "list"]) == 0
    printed = capsys.readouterr().out
    assert r"add\x1b]0;title\x07\x1b[2J\r\n\u202e\ud800 float32  sm_90" in printed
    assert printed.replace("\n", "").isprintable()


def test_list_says_that_the_directory_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output):
    folder = empty_cache(tmp_path / "cubins", monkeypatch)
    cache.load_or_compile("a", 90, OPTIONS, "add", lambda: kernel_of("a"))
    assert main(["cache", "list"]) == 0
    assert "not used" not in capsys.readouterr().out
    folder.chmod(0o777)
    monkeypatch.setattr(cache, "_shared", [])  # another process
    assert main(["cache", "list"]) == 0
    assert capsys.readouterr().out.endswith(f"not used: mode 777 lets others write; run: chmod go-w {str(folder)!r}\n")


def test_warm_does_not_compile_for_a_directory_that_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
):
    pytest.importorskip("triton")
    folder = empty_cache(tmp_path / "cubins", monkeypatch)
    folder.mkdir()
    folder.chmod(0o777)
    assert main(["cache", "warm", "--arch", "sm_90", "--ops", "add", "--layouts", "contiguous"]) == 1
    assert capsys.readouterr().err == (
        f"tilearray cache warm: cannot keep kernels in {str(folder)!r}: mode 777 lets others write; run: "
        f"chmod go-w {str(folder)!r}; set TILEARRAY_CACHE_DIR to another directory\n"
    )


# --- files of killed writers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, 3000])
def test_files_of_killed_writers_evict_nothing(fresh: Fresh, seconds: int):
    kept = fresh(limit=3 * file_size(1000))
    ask(kept, "a", size=1000)
    left = [kept.directory / f"{key('x')}.{number:016x}.tmp" for number in range(50)]
    for path in left:
        path.write_bytes(bytes(1000))
        os.utime(path, (path.stat().st_mtime - seconds,) * 2)
    age(kept, "a", 4000)
    other = fresh(limit=3 * file_size(1000))
    ask(other, "b", size=1000)
    assert {entry.key for entry in other.entries()} == {key("a"), key("b")}
    assert other.statistics().evictions == 0
    assert any(path.exists() for path in left) == (seconds == 0)


def test_a_living_writer_that_counts_as_dead_writes_again(fresh: Fresh, monkeypatch: pytest.MonkeyPatch):
    replace, removed = os.replace, []

    def replace_too_late(temporary: str, path: str) -> None:
        if not removed:
            removed.append(temporary)
            os.unlink(temporary)
        replace(temporary, path)

    ask(fresh(), "b")
    monkeypatch.setattr(os, "replace", replace_too_late)
    ask(fresh(), "a")
    assert removed
    assert not compiles(fresh(), "a")
