"""Text in other encodings than UTF-8: read as it was written, and said."""

import gzip

import polars as pl
import pytest

from reading import complaint, notes, save
from spectral_irt.errors import OptionError, ReadWarning
from spectral_irt.reading import read
from spectral_irt.reading import text_pieces as raw
from spectral_irt.reading.text_pieces import checked_encoding

TEXT = "élève,q1,q2\nZoë,1,0\nJosé,0,1\n"
WORDS = (["Zoë", "José"], ["q1", "q2"])


def labels(responses):
    return responses.persons.tolist(), responses.items.tolist()


def severity(responses):
    """Of the note on the encoding, if there is one."""
    return notes(responses)["encoding"].severity if "encoding" in notes(responses) else None


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        *[("utf-8", None), ("utf-8-sig", None), ("utf-16", "note"), ("utf-16-le", "note"), ("utf-16-be", "note")],
        *[("utf-32", "note"), ("cp1252", "warning"), ("latin-1", "warning")],
    ],
)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [7, 1 << 23])  # pieces that end within characters
def test_it_is_told_and_said(tmp_path, monkeypatch, encoding, said, packed, size):
    unpacked = raw._unpacked_plain
    monkeypatch.setattr(raw, "_unpacked_plain", lambda file, asked: unpacked(file, max(min(size, asked), 64)))
    path, data = tmp_path / ("a.csv.gz" if packed else "a.csv"), TEXT.encode(encoding)
    path.write_bytes(gzip.compress(data) if packed else data)
    found = read(path, person="élève")
    assert labels(found) == WORDS
    assert severity(found) == said


def test_the_euro_and_the_dash_of_windows(tmp_path):
    (tmp_path / "a.csv").write_bytes("id,q–1,q€2\na,1,0\nb,0,1\n".encode("cp1252"))
    assert read(tmp_path / "a.csv").items.tolist() == ["q–1", "q€2"]


@pytest.mark.parametrize("encoding", ["cp1250", "mac-roman", "cp1252", "utf-16", "UTF_8", "latin1"])
def test_what_is_said_is_believed(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes(TEXT.replace("è", "é").encode(encoding))
    found = read(tmp_path / "a.csv", person="éléve", encoding=encoding)
    assert labels(found) == WORDS
    assert severity(found) is None


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (TEXT.encode("cp1252"), {"encoding": "utf-8"}, ["line 1 is not UTF-8"]),  # no guess where it was said
        ("id,q1\nZoë,1\n".encode("cp1252"), {"encoding": "ascii"}, ["line 2 is not text in the encoding ascii"]),
        (TEXT.encode() + b"\xe9,1,0\n", {}, ["line 4 is not UTF-8 text", "encoding='cp1252'"]),  # damage
    ],
)
def test_bytes_that_are_none_of_it(tmp_path, data, options, said):
    (tmp_path / "a.csv").write_bytes(data)
    message = complaint(tmp_path / "a.csv", **options)
    assert all(words in message for words in said)


def test_json_lines_and_keys_and_several_files(tmp_path):
    (tmp_path / "a.jsonl").write_bytes('{"id": "Zoë", "responses": {"q1": 1, "é": 0}}\n'.encode("cp1252"))
    found = read(tmp_path / "a.jsonl")
    assert labels(found) == (["Zoë"], ["q1", "é"])
    assert severity(found) == "warning"
    (tmp_path / "a.csv").write_text("id,é,q2\na,A,B\nb,B,A\n", encoding="utf-8")
    (tmp_path / "b.csv").write_bytes("id,é,q2\nZoë,A,A\n".encode("cp1252"))
    (tmp_path / "key.csv").write_bytes("item,key\né,A\nq2,A\n".encode("cp1252"))
    with pytest.warns(ReadWarning, match=r"key\.csv is not UTF-8; it was read as Windows-1252.*encoding='cp1250'"):
        found = read([tmp_path / "a.csv", tmp_path / "b.csv"], key=tmp_path / "key.csv")
    assert labels(found) == (["a", "b", "Zoë"], ["é", "q2"])
    assert found.n_responses == 6
    assert ["b.csv" in note.sentence for note in found.notes if note.code == "encoding"] == [True]


def test_names_of_encodings(tmp_path):
    assert checked_encoding(None) is None
    assert checked_encoding("UTF8") == "utf-8"
    assert checked_encoding("windows-1252") == "cp1252"
    for wrong in ("utf-9", "rot13", "base64", "idna", "", "klingon", "a\0b"):
        with pytest.raises(OptionError, match="not the name of an encoding"):
            checked_encoding(wrong)
    with pytest.raises(OptionError, match=r"Did you mean .*'windows-1252'"):
        checked_encoding("window-1252")
    parquet = save(pl.DataFrame({"id": ["a"], "q1": [1]}), tmp_path / "a.parquet")
    assert "is for text files" in complaint(parquet, encoding="cp1252")
