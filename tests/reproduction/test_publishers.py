"""Small stand-ins in the layout of each publisher's file are read as what they are."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from reproduction.datasets import available, open_dataset
from reproduction.datasets.catalog import sources
from reproduction.datasets.publishers import LAYOUTS
from spectral_irt.errors import OptionError, ReadError

# person, item, rating; person 3 rated everything alike, item 40 was rated once
RATINGS = [
    (1, 10, 5.0),
    (1, 20, 3.0),
    (1, 30, 4.0),
    (2, 10, 4.0),
    (2, 20, 1.0),
    (3, 10, 2.0),
    (3, 20, 2.0),
    (4, 30, 5.0),
    (4, 40, 1.0),
    (4, 20, 3.0),
]


def ml_100k(folder: Path) -> None:
    lines = [f"{u}\t{i}\t{r:.0f}\t881250949" for u, i, r in RATINGS]
    write(folder / "ml-100k" / "u.data", lines)


def ml_1m(folder: Path) -> None:
    write(folder / "ml-1m" / "ratings.dat", [f"{u}::{i}::{r:.0f}::978300760" for u, i, r in RATINGS])


def ml_10m(folder: Path) -> None:
    write(folder / "ml-10M100K" / "ratings.dat", [f"{u}::{i}::{r:g}::838985046" for u, i, r in RATINGS])


def ml_20m(folder: Path) -> None:
    lines = [f"{u},{i},{r:.1f},1112486027" for u, i, r in RATINGS]
    write(folder / "ml-20m" / "ratings.csv", ["userId,movieId,rating,timestamp", *lines])


def ml_latest_small(folder: Path) -> None:
    lines = [f"{u},{i},{r:.1f},964982703" for u, i, r in RATINGS]
    write(folder / "ml-latest-small" / "ratings.csv", ["userId,movieId,rating,timestamp", *lines], "\r\n")


def hetrec(folder: Path) -> None:
    lines = [f"{u}\t{i}\t{r:g}\t29\t10\t2006\t23\t17\t16" for u, i, r in RATINGS]
    head = "userID\tmovieID\trating\tdate_day\tdate_month\tdate_year\tdate_hour\tdate_minute\tdate_second"
    write(folder / "hetrec2011-movielens-2k-v2" / "user_ratedmovies.dat", [head, *lines], "\r\n")


def eachmovie(folder: Path) -> None:
    # Scores are fifths; the person's mean may equal one of them only up to rounding.
    lines = [f"{u}\t{i}\t{r / 5:g}\t1\t1/24/1996 6:19:00 PM" for u, i, r in RATINGS]
    write(folder / "Vote.txt", lines)


def bx(folder: Path) -> None:
    lines = [f'"{u}";"{i}";"{r:.0f}"' for u, i, r in RATINGS]
    write(folder / "BX-Book-Ratings.csv", ['"User-ID";"ISBN";"Book-Rating"', *lines], "\r\n")


def book_genome(folder: Path) -> None:
    lines = [json.dumps({"item_id": i, "user_id": u, "rating": int(r)}) for u, i, r in RATINGS]
    write(folder / "book_dataset" / "raw" / "ratings.json", lines)


def neutral(folder: Path) -> None:
    persons, items, ratings = zip(*RATINGS, strict=True)
    frame = pl.DataFrame({"person": persons, "item": items, "rating": ratings})
    frame.cast({"person": pl.Int32, "item": pl.Int32, "rating": pl.Float32}).write_parquet(folder / "ml_1m.parquet")


def write(path: Path, lines: list[str], end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(line + end for line in lines).encode())


WRITERS = [
    ("ml_100k", ml_100k),
    ("ml_1m", ml_1m),
    ("ml_10m", ml_10m),
    ("ml_20m", ml_20m),
    ("ml_latest_small", ml_latest_small),
    ("hetrec", hetrec),
    ("eachmovie", eachmovie),
    ("bx", bx),
    ("book_genome", book_genome),
    ("ml_1m", neutral),
]


def expected() -> np.ndarray:
    """0 where a rating is above the person's mean, 1 where not, NaN where there is none: one person after the other."""
    persons, items = sorted({u for u, _, _ in RATINGS}), sorted({i for _, i, _ in RATINGS})
    out = np.full((len(persons), len(items)), np.nan)
    for u, i, r in RATINGS:
        own = [rating for person, _, rating in RATINGS if person == u]
        out[persons.index(u), items.index(i)] = r * len(own) <= sum(own)
    return out


@pytest.mark.parametrize(("name", "write_files"), WRITERS, ids=lambda x: getattr(x, "__name__", x))
def test_ratings(tmp_path: Path, name: str, write_files) -> None:
    write_files(tmp_path)
    dataset = open_dataset(name, tmp_path)
    np.testing.assert_array_equal(dataset.responses.to_dense(), expected())
    assert dataset.kind == "ratings"
    assert dataset.item_ratings is not None
    assert dataset.item_means is not None
    assert dataset.item_ratings.tolist() == [3, 4, 2, 1]
    scale = 5 if name == "eachmovie" else 1
    np.testing.assert_allclose(scale * dataset.item_means, [11 / 3, 9 / 4, 9 / 2, 1])
    assert [str(label) for label in dataset.responses.items] == ["10", "20", "30", "40"]
    assert any("10 ratings (published:" in note for note in dataset.notes)
    assert name in [source.name for source in available(tmp_path) if source.found]


@pytest.mark.parametrize(
    ("archive", "folder", "name", "write_files"),
    [
        ("ml-1m.zip", "ml-1m", "ml_1m", ml_1m),
        ("ml-10m.zip", "ml-10M100K", "ml_10m", ml_10m),
        ("ml-20m.zip", "ml-20m", "ml_20m", ml_20m),
        ("BX-CSV-Dump.zip", ".", "bx", bx),
        ("book_dataset.zip", "book_dataset", "book_genome", book_genome),
    ],
)
def test_as_zipped_by_the_publisher(tmp_path: Path, archive: str, folder: str, name: str, write_files) -> None:
    plain, zipped = tmp_path / "plain", tmp_path / "zipped"
    plain.mkdir()
    zipped.mkdir()
    write_files(plain)
    with zipfile.ZipFile(zipped / archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"{folder}/README", "read me")
        for path in sorted(plain.rglob("*.*")):
            if path.is_file():
                file.write(path, path.relative_to(plain))
    dataset = open_dataset(name, zipped)
    np.testing.assert_array_equal(dataset.responses.to_dense(), expected())
    assert [source.found for source in available(zipped) if source.name == name] == [zipped / archive]
    assert open_dataset(name, zipped / archive).responses.digest() == dataset.responses.digest()


def test_where_it_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ml_1m(tmp_path)
    folder = tmp_path / "ml-1m"
    same = open_dataset("ml_1m", tmp_path).responses.digest()
    assert open_dataset("ML-1M", folder).responses.digest() == same  # the publisher's own folder
    assert open_dataset("ml_1m", folder / "ratings.dat").responses.digest() == same  # the file itself
    monkeypatch.setenv("SPECTRAL_IRT_DATA", str(tmp_path))
    assert open_dataset("ml_1m").responses.digest() == same
    with pytest.raises(ReadError, match=r"ML-10M is not in .* Get ml-10m.zip from https://grouplens.org"):
        open_dataset("ml_10m")  # has a ratings.dat too, and this is not it


def test_cutoffs(tmp_path: Path) -> None:
    ml_1m(tmp_path)
    whole = open_dataset("ml_1m", tmp_path)
    dataset = open_dataset("ml_1m", tmp_path, cutoff=3)
    assert dataset.responses.items.tolist() == [10, 20]
    assert dataset.responses.n_persons == whole.responses.n_persons
    assert dataset.item_ratings.tolist() == [3, 4]  # type: ignore[union-attr]
    np.testing.assert_allclose(dataset.item_means, [11 / 3, 9 / 4])
    # Means of people are those over all their ratings.
    np.testing.assert_array_equal(dataset.responses.to_dense(), expected()[:, :2])
    assert "2 of 4 items kept: at least 3 ratings." in dataset.notes
    with pytest.raises(OptionError, match="no item with at least 10 ratings"):
        open_dataset("ml_1m", tmp_path, cutoff="authors")
    for wrong in ("all", -1, 2.5, True):
        with pytest.raises(OptionError, match="cutoff is"):
            open_dataset("ml_1m", tmp_path, cutoff=wrong)  # type: ignore[arg-type]


def test_the_authors_drop_users_too(tmp_path: Path) -> None:
    lines = [f"{u},{i},{(u + i) % 5},0" for u in range(60) for i in range(60 if u < 55 else 30)]
    write(tmp_path / "ml-20m" / "ratings.csv", ["userId,movieId,rating,timestamp", *lines])
    dataset = open_dataset("ml_20m", tmp_path, cutoff="authors")
    assert (dataset.responses.n_persons, dataset.responses.n_items) == (55, 60)
    assert "55 of 60 people kept: at least 40 ratings." in dataset.notes


def test_riiid_first_answers_without_lectures(tmp_path: Path) -> None:
    rows = [
        "row_id,timestamp,user_id,content_id,content_type_id,task_container_id,user_answer,answered_correctly,"
        "prior_question_elapsed_time,prior_question_had_explanation",
        "0,0,115,5692,0,1,3,1,,",
        "1,56943,115,5716,0,2,2,0,37000.0,False",
        "2,60000,115,89,1,3,-1,-1,,False",  # a lecture
        "3,118363,115,5692,0,4,0,0,55000.0,True",  # again: does not count
        "4,118363,124,5716,0,0,0,1,,",
    ]
    write(tmp_path / "riiid-test-answer-prediction" / "train.csv", rows)
    dataset = open_dataset("riiid", tmp_path)
    np.testing.assert_array_equal(dataset.responses.to_dense(), [[1, 0], [np.nan, 1]])
    assert dataset.item_means is None
    assert dataset.paper == "RIIID"
    assert any(note.startswith("1 repeated answers") for note in dataset.notes)
    assert any("not published" in note for note in dataset.notes)


def arff(students: list[str]) -> list[str]:
    names = ["ge", "cst", "tnp", "twp", "iap", "esp", "arr"]
    head = ["@relation Sapfile1", *(f"@attribute {name} {{Best,Vg,Good,Pass,Fail,M,F,G,Y,N}}" for name in names)]
    return [*head, "% a remark", "", "@data", *students]


def test_uci_students(tmp_path: Path) -> None:
    write(tmp_path / "Sapfile1.arff", arff(["F,G,Good,Good,Vg,Good,Y", "M, G ,Vg,Best,Pass,Fail,N"]), "\r\n")
    dataset = open_dataset("uci_student", tmp_path)
    assert dataset.responses.items.tolist() == ["esp", "iap", "tnp", "twp"]
    np.testing.assert_array_equal(dataset.responses.to_dense(), [[0, 1, 0, 0], [0, 0, 1, 1]])
    assert dataset.item_means is None


def test_uci_students_of_the_paper_are_the_first(tmp_path: Path) -> None:
    write(tmp_path / "Sapfile1.arff", arff(["F,G,Vg,Good,Vg,Good,Y"] * 150 + ["F,G,Good,Best,Pass,Vg,N"] * 150))
    assert open_dataset("uci_student", tmp_path).responses.n_persons == 300
    dataset = open_dataset("uci_student", tmp_path, cutoff="authors")
    assert dataset.responses.persons.tolist() == list(range(1, 132))
    assert "131 of 300 people kept: the first, as in the paper." in dataset.notes


def test_three_grades_in_a_zip_in_a_zip(tmp_path: Path) -> None:
    rows = ['"GP";"0";"11";11', '"GP";"9";"11";11', '"MS";"12";"13";12', '"MS";"14";"14";"14"']
    text = "\n".join(["school;G1;G2;G3", *rows]) + "\n"
    inner = tmp_path / "inner.zip"
    with zipfile.ZipFile(inner, "w") as file:
        file.writestr("student-mat.csv", "school;G1;G2;G3\nGP;1;1;1\n")
        file.writestr("student-por.csv", text)
    with zipfile.ZipFile(tmp_path / "student+performance.zip", "w") as file:
        file.write(inner, "student.zip")
    dataset = open_dataset("grades_three", tmp_path)
    # Medians are 10.5, 12 and 11.5; the second of G1 is below its median, as is the first.
    np.testing.assert_array_equal(dataset.responses.to_dense(), [[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1]])


@pytest.mark.parametrize("mark", [",", ";", "\t", "  "])
def test_jester(tmp_path: Path, mark: str) -> None:
    ratings = np.full((3, 100), 99.0)
    ratings[0, :3] = [-7.82, 8.79, 0.1]
    ratings[1] = np.linspace(-9.95, 10, 100).round(2)
    ratings[2, [4, 99]] = [0.35, 0.35]
    rows = [[(row != 99).sum(), *row] for row in ratings]
    write(tmp_path / "jester-data-1.txt", [mark.join(f"{x:g}" for x in row) for row in rows])
    dataset = open_dataset("jester1", tmp_path)
    dense = dataset.responses.to_dense()
    assert dataset.responses.items.tolist() == list(range(1, 101))
    np.testing.assert_array_equal(np.isfinite(dense), ratings != 99)
    np.testing.assert_array_equal(dense[0, :3], [1, 0, 1])
    np.testing.assert_array_equal(dense[2, [4, 99]], [1, 1])  # equal to the mean is not above it


def test_book_crossing_as_messy_as_it_is(tmp_path: Path) -> None:
    lines = [
        b'"User-ID";"ISBN";"Book-Rating"',
        b'"276725";"034545104X";"0"',
        b'"276726";"0155061224";"5"',
        b'"276726";"\\"0432534220\\"";"9"',  # quotes in the number
        b'"276726";"3548603203\xe4";"5"',  # Latin-1
        b'"276727";"2;264";"8"',
    ]
    (tmp_path / "BX-Book-Ratings.csv").write_bytes(b"\r\n".join(lines) + b"\r\n")
    responses = open_dataset("bx", tmp_path).responses
    assert (responses.n_persons, responses.n_items, responses.n_responses) == (3, 5, 5)
    assert "0155061224" in responses.items
    assert "2;264" in responses.items


def test_a_single_precision_rating_equal_to_the_mean(tmp_path: Path) -> None:
    """The mean of 0.4, 0.6 and 0.8 is 0.6; in single precision 0.6 is a trifle above it."""
    frame = pl.DataFrame({"person": [1, 1, 1], "item": [1, 2, 3], "rating": [0.4, 0.6, 0.8]}).cast(
        {"rating": pl.Float32}
    )
    frame.write_parquet(tmp_path / "jester1.parquet")
    assert open_dataset("jester1", tmp_path).responses.to_dense().tolist() == [[1, 1, 0]]


def test_answers_in_neutral_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame({"person": [7, 7, 9], "item": ["a", "b", "a"], "response": [1, 0, 1], "grade": [4, 2, 3]})
    frame.write_parquet(tmp_path / "helm_lite.parquet")
    dataset = open_dataset("helm_lite", tmp_path)
    np.testing.assert_array_equal(dataset.responses.to_dense(), [[1, 0], [1, np.nan]])
    assert dataset.paper is None
    assert dataset.item_ratings is not None
    assert dataset.item_ratings.tolist() == [2, 1]


def test_lsat_needs_nothing() -> None:
    dataset = open_dataset("lsat")
    assert (dataset.responses.n_persons, dataset.responses.n_items, dataset.notes) == (1000, 5, ())
    assert [source.name for source in available() if source.found] == ["lsat"]


def test_the_catalog_says_what_to_do() -> None:
    assert len({source.name for source in sources()}) == len(sources())
    papers = {source.paper for source in sources()} - {None}
    assert len(papers) == 12
    for source in sources():
        assert source.download
        assert source.page
        assert source.license
        assert source.rows
        assert source.kind in ("ratings", "answers")
        assert source.layout in ("neutral", "bundled", *LAYOUTS)
        # A file of the publisher's needs a reader, and the other way round.
        assert bool(source.files) == (source.layout in LAYOUTS)
