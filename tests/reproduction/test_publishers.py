"""Small stand-ins in the layout of each publisher's file are read as what they are; what is not gets one sentence."""

import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from reproduction.datasets import available, open_dataset
from reproduction.datasets.catalog import sources
from reproduction.datasets.opening import below_own_mean
from reproduction.datasets.publishers import LAYOUTS
from spectral_irt.errors import OptionError, ReadError, ResponseValueError

# person, item, rating; person 3 rated everything alike, item 40 was rated once
RATINGS = [(1, 10, 5), (1, 20, 3), (1, 30, 4), (2, 10, 4), (2, 20, 1), (3, 10, 2), (3, 20, 2), (4, 30, 5), (4, 40, 1)]
RATINGS += [(4, 20, 3)]
CSV = "userId,movieId,rating,timestamp"
HETREC = "userID\tmovieID\trating\tdate_day"
TIMES, AT = "\tdate_month\tdate_year\tdate_hour\tdate_minute\tdate_second", "29\t10\t2006\t23\t17\t16"
BOOKS = '"User-ID";"ISBN";"Book-Rating"'
# The file as its publisher lays it out: its head, a line, what ends a line.
LAYOUT = {
    "ml_100k": ("ml-100k/u.data", "", "{u}\t{i}\t{r}\t881250949", "\n"),
    "ml_1m": ("ml-1m/ratings.dat", "", "{u}::{i}::{r}::978300760", "\n"),
    "ml_10m": ("ml-10M100K/ratings.dat", "", "{u}::{i}::{r}::838985046", "\n"),
    "ml_20m": ("ml-20m/ratings.csv", CSV, "{u},{i},{r:.1f},1112486027", "\n"),
    "ml_latest_small": ("ml-latest-small/ratings.csv", CSV, "{u},{i},{r:.1f},964982703", "\r\n"),
    "hetrec": ("hetrec2011-movielens-2k-v2/user_ratedmovies.dat", HETREC + TIMES, "{u}\t{i}\t{r}\t" + AT, "\r\n"),
    # Scores are fifths; the person's mean may equal one of them only up to rounding.
    "eachmovie": ("Vote.txt", "", "{u}\t{i}\t{fifth:g}\t1\t1/24/1996 6:19:00 PM", "\n"),
    "bx": ("BX-Book-Ratings.csv", BOOKS, '"{u}";"{i}";"{r}"', "\r\n"),
    "book_genome": ("book_dataset/raw/ratings.json", "", '{{"item_id": {i}, "user_id": {u}, "rating": {r}}}', "\n"),
}


def write(path: Path, lines: list[str], end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(line + end for line in lines).encode())


def publish(name: str, folder: Path) -> None:
    file, head, line, end = LAYOUT[name]
    lines = [line.format(u=u, i=i, r=r, fifth=r / 5) for u, i, r in RATINGS]
    write(folder / file, [head, *lines] if head else lines, end)


def expected() -> np.ndarray:
    """0 where a rating is above the person's mean, 1 where not, NaN where there is none: one person after the other."""
    persons, items = sorted({u for u, _, _ in RATINGS}), sorted({i for _, i, _ in RATINGS})
    out = np.full((len(persons), len(items)), np.nan)
    for u, i, r in RATINGS:
        own = [rating for person, _, rating in RATINGS if person == u]
        out[persons.index(u), items.index(i)] = r * len(own) <= sum(own)
    return out


@pytest.mark.parametrize("name", [*LAYOUT, "neutral"])
def test_ratings(tmp_path: Path, name: str) -> None:
    if name == "neutral":
        schema = {"person": pl.Int32, "item": pl.Int32, "rating": pl.Float32}
        name, frame = "ml_1m", pl.DataFrame(RATINGS, schema=schema, orient="row")
        frame.write_parquet(tmp_path / "ml_1m.parquet")
    else:
        publish(name, tmp_path)
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


ZIPPED = {"ml_1m": "ml-1m", "ml_10m": "ml-10m", "ml_20m": "ml-20m", "bx": "BX-CSV-Dump", "book_genome": "book_dataset"}


@pytest.mark.parametrize("name", ZIPPED)
def test_as_zipped_by_the_publisher(tmp_path: Path, name: str) -> None:
    plain, zipped, archive = tmp_path / "plain", tmp_path / "zipped", f"{ZIPPED[name]}.zip"
    zipped.mkdir()
    publish(name, plain)
    file_in_it = LAYOUT[name][0]
    with zipfile.ZipFile(zipped / archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(str(Path(file_in_it).parent / "README"), "read me")
        file.write(plain / file_in_it, file_in_it)
    dataset = open_dataset(name, zipped)
    np.testing.assert_array_equal(dataset.responses.to_dense(), expected())
    assert [source.found for source in available(zipped) if source.name == name] == [zipped / archive]
    assert open_dataset(name, zipped / archive).responses.digest() == dataset.responses.digest()


def test_where_it_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish("ml_1m", tmp_path)
    folder = tmp_path / "ml-1m"
    same = open_dataset("ml_1m", tmp_path).responses.digest()
    assert open_dataset("ML-1M", folder).responses.digest() == same  # the publisher's own folder
    assert open_dataset("ml_1m", folder / "ratings.dat").responses.digest() == same  # the file itself
    monkeypatch.setenv("SPECTRAL_IRT_DATA", str(tmp_path))
    assert open_dataset("ml_1m").responses.digest() == same
    with pytest.raises(ReadError, match=r"ML-10M is not in .* Get ml-10m.zip from https://grouplens.org"):
        open_dataset("ml_10m")  # has a ratings.dat too, and this is not it


def test_cutoffs(tmp_path: Path) -> None:
    publish("ml_1m", tmp_path)
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
    write(tmp_path / "ml-20m" / "ratings.csv", [CSV, *lines])
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


def test_uci_students(tmp_path: Path) -> None:
    names = ["ge", "cst", "tnp", "twp", "iap", "esp", "arr"]
    head = ["@relation Sapfile1", *(f"@attribute {name} {{Best,Vg,Good,Pass,Fail,M,F,G,Y,N}}" for name in names)]
    head += ["% a remark", "", "@data"]
    write(tmp_path / "Sapfile1.arff", [*head, "F,G,Good,Good,Vg,Good,Y", "M, G ,Vg,Best,Pass,Fail,N"], "\r\n")
    dataset = open_dataset("uci_student", tmp_path)
    assert dataset.responses.items.tolist() == ["esp", "iap", "tnp", "twp"]
    np.testing.assert_array_equal(dataset.responses.to_dense(), [[0, 1, 0, 0], [0, 0, 1, 1]])
    assert dataset.item_means is None
    write(tmp_path / "Sapfile1.arff", head + ["F,G,Vg,Good,Vg,Good,Y"] * 150 + ["F,G,Good,Best,Pass,Vg,N"] * 150)
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
    frame = pl.DataFrame({"person": [1, 1, 1], "item": [1, 2, 3], "rating": [0.4, 0.6, 0.8]})
    frame.cast({"rating": pl.Float32}).write_parquet(tmp_path / "jester1.parquet")
    assert open_dataset("jester1", tmp_path).responses.to_dense().tolist() == [[1, 1, 0]]


def test_a_repeated_rating_counts_neither_by_itself_nor_in_the_mean(tmp_path: Path) -> None:
    """Item 1 has 5 and then 1, which is not used; item 2 has 4: the mean is 4.5, with the repeated rating 10 / 3."""
    ratings = {"person": [1, 1, 1, 2, 2], "item": [1, 1, 2, 1, 2], "rating": [5.0, 1.0, 4.0, None, 3.0]}
    pl.DataFrame(ratings).write_parquet(tmp_path / "jester1.parquet")
    np.testing.assert_array_equal(open_dataset("jester1", tmp_path).responses.to_dense(), [[0, 1], [np.nan, 1]])


@pytest.mark.parametrize("rating", [0.1, 0.7, 1 / 3, 1e-300, 1e300])
def test_equal_ratings_are_never_above_their_mean(rating: float) -> None:
    ratings = {"person": ["a"] * 6 + ["b"] * 7, "item": [*range(6), *range(7)], "value": [rating] * 13}
    assert below_own_mean(pl.DataFrame(ratings))["value"].to_list() == [1] * 13


def test_the_column_of_persons_may_be_called_user(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": [7, 7, 9], "item": ["a", "b", "a"], "response": [1, 0, 1]})
    frame.write_parquet(tmp_path / "helm_lite.parquet")
    dataset = open_dataset("helm_lite", tmp_path)
    np.testing.assert_array_equal(dataset.responses.to_dense(), [[1, 0], [1, np.nan]])


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
        assert all((source.download, source.page, source.license, source.rows))
        assert source.kind in ("ratings", "answers")
        assert source.layout in ("neutral", "bundled", *LAYOUTS)
        # A file of the publisher's needs a reader, and the other way round.
        assert bool(source.files) == (source.layout in LAYOUTS)


BAD = [
    ("ml_100k", "u.data", "196,242,3\n", "u.data: the first line does not look like ML-100K"),
    ("ml_100k", "u.data", "196\t242\t3\t1\n197\t24", "u.data: line 2 .* has '197', '24', '' .* cut short"),
    ("ml_100k", "u.data", "196\t242\t3\t1\n197\t242\tgood\t1\n", "line 2 .* 'good'"),
    ("ml_100k", "u.data", "", "u.data is empty"),
    ("ml_1m", "ml-1m/ratings.dat", "1::1193::5::978\n1::66", "line 2 .* has '1', '66', ''"),
    ("ml_1m", "ml-1m/ratings.dat", "userId,movieId,rating\n1,2,3\n", "the first line does not look like ML-1M"),
    ("ml_20m", "ml-20m/ratings.csv", "movieId,title,genres\n1,Toy,Fun\n", "has no column 'userId', 'rating'"),
    ("ml_20m", "ml-20m/ratings.csv", CSV + "\n", "holds no ratings"),
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


def test_parquet_without_ratings_or_with_other_responses(tmp_path: Path) -> None:
    table = pl.DataFrame({"person": [1, 1], "item": [2, 3], "response": [1, 5]})
    for name, error, message in (("ml_1m", ReadError, "no column 'rating'"), ("statics", ResponseValueError, ".*5")):
        table.write_parquet(tmp_path / f"{name}.parquet")
        with pytest.raises(error, match=rf"{name}.parquet.*{message}"):
            open_dataset(name, tmp_path)


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
