"""Results on disk: what takes which place, with whose permissions, and which places are refused."""

import os
import re
import stat
import threading
from pathlib import Path

import pytest

from spectral_irt import files
from spectral_irt.errors import OptionError, OutputError, ReadError
from spectral_irt.files import all_or_nothing, input_paths, local_path, refuse_inputs, write_each
from spectral_irt.reading import read
from spectral_irt.reading.sql import kind_of


def write(path: Path, text: str = "new") -> None:
    write_each({path: lambda draft: draft.write_text(text)})


def other_names(path: Path) -> list[Path]:
    """A hard link, a symbolic link, a link to the folder, and a way around."""
    parent = path.parent
    hard = parent / "hard.csv"
    soft = parent / "soft.csv"
    folder = parent.parent / "linked"
    os.link(path, hard)
    soft.symlink_to(path)
    folder.symlink_to(parent)
    return [path, hard, soft, folder / path.name, parent / ".." / parent.name / path.name]


def test_a_file_below_an_input_folder_is_an_input(tmp_path: Path) -> None:
    path = tmp_path / "answers" / "2024" / "may" / "x.csv"
    path.parent.mkdir(parents=True)
    path.write_text("old")
    for output in other_names(path):
        with pytest.raises(OutputError, match="being read"):
            refuse_inputs([output], [tmp_path / "answers"])
    refuse_inputs([path.with_name("y.csv")], [tmp_path / "answers"])


def test_an_input_that_is_named_by_an_address_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "my answers.csv"
    path.write_text("old")
    for address in (path.as_uri(), f"file://localhost{path.as_uri().removeprefix('file://')}", f"FILE://{path}"):
        with pytest.raises(OutputError, match="being read"), all_or_nothing([path], inputs=[address]):
            pass
    assert path.read_text() == "old"


@pytest.mark.parametrize("address", ["http://[::1/a.csv", "file://[x/a.csv", "https://[/"])
def test_an_address_with_brackets_that_do_not_match_is_no_path(address: str) -> None:
    assert local_path(address) is None
    assert kind_of(address)[0] == ""
    with pytest.raises(ReadError, match="is not an address"):
        read(address)


def test_reading_and_refusing_mean_the_same_files(tmp_path: Path) -> None:
    from spectral_irt.reading.formats import expand

    for name in ("a.csv", "sub/b.csv", "sub/deep/c.csv", "sub/notes.md", "_hidden/d.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("person,q1\na,1\n")
    for source in (tmp_path, tmp_path / "*.csv", tmp_path / "**" / "*.csv", tmp_path / "a.csv", tmp_path.as_uri()):
        read = {file.path for file in expand(source)}
        assert read
        assert read <= set(input_paths(source))


@pytest.mark.parametrize("address", ["s3://logs/out", "gs://logs/out", "https://host/out", "file:///tmp/out"])
def test_an_address_is_no_place_for_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.chdir(tmp_path)
    scheme = re.escape(address.partition(":")[0])
    for output in (Path(address, "items.csv"), Path(address)):
        with pytest.raises(OutputError, match=f"{scheme}://.*address"):
            write(output)
    with pytest.raises(OutputError, match="address"), all_or_nothing([], folders=[Path(address)]):
        pass
    assert not any(tmp_path.iterdir())


def test_results_that_would_go_to_one_file_are_named(tmp_path: Path) -> None:
    with (
        pytest.raises(OptionError, match=r"a\.csv.*b/\.\./a\.csv"),
        all_or_nothing([tmp_path / "a.csv", tmp_path / "b" / ".." / "a.csv"]),
    ):
        pass


def test_a_folder_that_another_process_has_just_made_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one is quicker, between the look for the folder and its making."""
    make = Path.mkdir

    def slower(path: Path, *how: int) -> None:
        if path.parent == tmp_path:
            make(path)
        make(path, *how)

    monkeypatch.setattr(Path, "mkdir", slower)
    write(tmp_path / "new" / "items.csv")
    assert (tmp_path / "new" / "items.csv").read_text() == "new"


def test_many_at_once_in_one_new_folder(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def work(k: int, start: threading.Barrier) -> None:
        for turn in range(20):
            start.wait()
            try:
                write(tmp_path / f"turn{turn}" / "deep" / f"{k}.csv")
            except BaseException as error:
                errors.append(error)

    start = threading.Barrier(4)
    threads = [threading.Thread(target=work, args=(k, start)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(list(tmp_path.rglob("*.csv"))) == 80


def test_a_folder_that_a_failing_process_removes_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one made the folder, failed, and takes it away between the look for the folder and the draft."""
    new = tmp_path / "deep" / "new"
    new.mkdir(parents=True)
    opened = os.open
    removed: list[Path] = []

    def later(path: Path, *how: int) -> int:
        for folder in (new, new.parent)[: 2 - len(removed)]:
            folder.rmdir()
            removed.append(folder)
        return opened(path, *how)

    monkeypatch.setattr(os, "open", later)
    write(new / "items.csv")
    assert removed == [new, new.parent]
    assert (new / "items.csv").read_text() == "new"


def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path: Path) -> None:
    behind = tmp_path / "store" / "items.csv"
    behind.parent.mkdir()
    behind.write_text("old")
    link = tmp_path / "results" / "items.csv"
    link.parent.mkdir()
    link.symlink_to(Path("..", "store", "items.csv"))
    number = behind.stat().st_ino
    write(link)
    assert link.is_symlink()
    assert behind.read_text() == "new"
    assert behind.stat().st_ino != number, "it was moved into place, complete, and not written over"
    assert [path.name for path in behind.parent.iterdir()] == ["items.csv"]
    dangling = tmp_path / "results" / "persons.csv"
    dangling.symlink_to(tmp_path / "store" / "persons.csv")
    write(dangling)
    assert dangling.is_symlink()
    assert (tmp_path / "store" / "persons.csv").read_text() == "new"


def test_a_failure_leaves_the_file_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "behind.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("behind.csv")
    with pytest.raises(ZeroDivisionError):
        write_each({tmp_path / "link.csv": lambda draft: 1 // 0})
    assert (tmp_path / "behind.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["behind.csv", "link.csv"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "persons.csv"
    path.write_text("old")
    path.chmod(mode)
    while_written: list[int] = []

    def writer(draft: Path) -> None:
        while_written.append(stat.S_IMODE(draft.stat().st_mode))
        draft.write_text("new")

    write_each({path: writer})
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert while_written[0] & 0o077 & ~mode == 0, "nobody else may read the draft, either"


def test_a_new_file_has_the_permissions_of_every_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write(tmp_path / "items.csv")
    assert (tmp_path / "items.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_is_written_is_told_by_the_name_that_was_given(tmp_path: Path) -> None:
    (tmp_path / "behind.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("behind.csv")
    files.written.clear()
    write(tmp_path / "link.csv")
    assert files.written == [tmp_path / "link.csv"]
