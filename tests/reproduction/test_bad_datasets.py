"""Files that are not what they should be: one sentence that says so."""

from __future__ import annotations

import zipfile
from pathlib import Path

import polars as pl
import pytest

from reproduction.datasets import available, open_dataset
from spectral_irt.errors import OptionError, ReadError, ResponseValueError

HETREC = "userID\tmovieID\trating\tdate_day"

BAD = [
    ("ml_100k", "u.data", "196,242,3\n", "u.data: the first line does not look like ML-100K"),
    ("ml_100k", "u.data", "196\t242\t3\t1\n197\t24", "u.data: line 2 .* has '197', '24', '' .* cut short"),
    ("ml_100k", "u.data", "196\t242\t3\t1\n197\t242\tgood\t1\n", "line 2 .* 'good'"),
    ("ml_100k", "u.data", "", "u.data is empty"),
    ("ml_1m", "ml-1m/ratings.dat", "1::1193::5::978\n1::66", "line 2 .* has '1', '66', ''"),
    ("ml_1m", "ml-1m/ratings.dat", "userId,movieId,rating\n1,2,3\n", "the first line does not look like ML-1M"),
    ("ml_20m", "ml-20m/ratings.csv", "movieId,title,genres\n1,Toy,Fun\n", "has no column 'userId', 'rating'"),
    ("ml_20m", "ml-20m/ratings.csv", "userId,movieId,rating,timestamp\n", "holds no ratings"),
    ("hetrec", "user_ratedmovies.dat", HETREC + "\n75\t3\t1\t2\n75\tx\t1\t2\n", "line 3 .* 'x'"),
    ("eachmovie", "Vote.txt", "only words here\n", "the first line does not look like EachMovie"),
    ("bx", "BX-Book-Ratings.csv", '"User-ID";"Age"\n"1";"2"\n', "has no column 'ISBN', 'Book-Rating'"),
    ("bx", "BX-Book-Ratings.csv", '"User-ID";"ISBN";"Book-Rating"\n"1";"2";"3"\n"1";"0', "line 3 does not look like"),
    ("book_genome", "raw/ratings.json", '{"item": 1}\n', "the first line has no 'item_id', 'user_id', 'rating'"),
    ("book_genome", "raw/ratings.json", '{"item_id":1,"user_id":2,"rating":3}\n{"item_id":1,"us', "ratings.json"),
    ("book_genome", "raw/ratings.json", '{"item_id":1,"user_id":2,"rating":3}\n{"item_id":1}\n', "row 2 has no person"),
    ("uci_student", "Sapfile1.arff", "@attribute ge {M}\n@data\nM\n", "no attribute 'tnp', 'twp', 'iap', 'esp'"),
    ("uci_student", "Sapfile1.arff", "@attribute tnp {Vg}\n@data\nVg,Good\n", "line 3 has 2 values"),
    ("grades_three", "student-por.csv", "school,G1,G2,G3\nGP,1,2,3\n", "no column 'G1', 'G2', 'G3'"),
    ("grades_three", "student-por.csv", "G1;G2;G3\n1;2;3\n1;2\n", "column 'G3' has a value that is not a grade"),
    ("jester1", "jester-data-1.csv", "1,2,3\n", "has 3 columns; Jester has 101"),
    ("jester1", "jester-data-1.csv", "1,2,word\n", "not the Jester table"),
    ("jester1", "jester-data-1.csv", ",".join(["5", *["99"] * 100]) + "\n", "line 1 says 5 ratings"),
    ("jester1", "jester-data-1.xls", "\xd0\xcf\x11\xe0", "is an Excel file.*save it as jester-data-1.csv"),
    ("riiid", "riiid/train.csv", "row_id,user_id,content_id\n0,1,2\n", "has no column 'answered_correctly'"),
    ("ml_1m", "ml_1m.parquet", "PAR1 and then nonsense", "ml_1m.parquet"),
]


@pytest.mark.parametrize(("name", "file", "text", "message"), BAD)
def test_one_sentence(tmp_path: Path, name: str, file: str, text: str, message: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ReadError, match=message) as caught:
        open_dataset(name, tmp_path)
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parquet_without_ratings(tmp_path: Path) -> None:
    pl.DataFrame({"person": [1], "item": [2], "response": [1]}).write_parquet(tmp_path / "ml_1m.parquet")
    with pytest.raises(ReadError, match="has no column 'rating'"):
        open_dataset("ml_1m", tmp_path)


def test_parquet_with_other_responses(tmp_path: Path) -> None:
    pl.DataFrame({"person": [1, 1], "item": [2, 3], "response": [1, 5]}).write_parquet(tmp_path / "statics.parquet")
    with pytest.raises(ResponseValueError, match=r"statics.parquet: .*5"):
        open_dataset("statics", tmp_path)


def test_damaged_zip(tmp_path: Path) -> None:
    archive = tmp_path / "ml-1m.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("ml-1m/ratings.dat", "1::1193::5::978300760\n" * 1000)
    whole = archive.read_bytes()
    archive.write_bytes(whole[:40] + b"\xff" * 20 + whole[60:])
    with pytest.raises(ReadError, match=r"ratings.dat in ml-1m.zip cannot be unpacked .*download it again"):
        open_dataset("ml_1m", tmp_path)
    archive.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ReadError, match=r"ml-1m.zip cannot be opened .*download it again"):
        open_dataset("ml_1m", tmp_path)


def test_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECTRAL_IRT_DATA", raising=False)
    with pytest.raises(OptionError, match="there is no dataset 'netflix'; choose from lsat, uci_student"):
        open_dataset("netflix")
    with pytest.raises(ReadError, match=r"say `data=`, or set SPECTRAL_IRT_DATA"):
        open_dataset("ml_1m")
    with pytest.raises(ReadError, match="there is no directory"):
        open_dataset("ml_1m", tmp_path / "nowhere")
    monkeypatch.setenv("SPECTRAL_IRT_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ReadError, match="which SPECTRAL_IRT_DATA names"):
        available()
