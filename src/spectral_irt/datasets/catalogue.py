"""Every dataset that can be opened by name: what it is, where its publisher keeps it, and what others did to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spectral_irt.errors import OptionError

_MOVIELENS = "MovieLens terms: research use, no redistribution without permission"
_UCI = "CC BY 4.0"
_NEUTRAL = "{name}.parquet with columns user, item and {value}"


@dataclass(frozen=True)
class Source:
    """A dataset by name.

    Attributes
    ----------
    name, title : str
        `name` opens it; `title` is for tables.
    kind : "ratings" or "answers"
        Ratings are compared with the mean of the user's own; answers are 1 = right (or good) and 0 = wrong.
    paper : str or None
        The row of the paper's tables that it stands for.
    download, page, licence : str
        What the user must fetch, from which project page, under which terms as far as known.
    rows, users, items : int or None
        Sizes of the published file.
    files : tuple of str
        The file that is read, as its publisher names it; with a folder where the name alone says too little.
    archives : tuple of str
        Zip files in which that file comes.
    layout : str
        How the file is to be read: a name in `layouts.LAYOUTS`; "neutral" for Parquet only, "bundled" for ours.
    least_item, least_user : int
        The authors' cut-offs: items and users with fewer ratings are dropped.
    first_users : int
        How many users the authors have, the first ones of the file, where it has more; 0 for all.
    remarks : tuple of str
        What to know before comparing numbers.
    found : path or None
        Where it was found; set by `available`.
    """

    name: str
    title: str
    kind: str
    paper: str | None
    download: str
    page: str
    licence: str
    rows: int | None = None
    users: int | None = None
    items: int | None = None
    files: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    layout: str = "neutral"
    least_item: int = 0
    least_user: int = 0
    first_users: int = 0
    remarks: tuple[str, ...] = ()
    found: Path | None = None

    @property
    def unit(self) -> str:
        return "ratings" if self.kind == "ratings" else "answers"


def _only_neutral(name: str, title: str, page: str, licence: str, rows: int, users: int, items: int) -> Source:
    """A dataset outside the paper, read from the neutral Parquet."""
    download = _NEUTRAL.format(name=name, value="response")
    return Source(name, title, "answers", None, download, page, licence, rows, users, items)


SOURCES: tuple[Source, ...] = (
    Source(
        "lsat",
        "LSAT section 6",
        "answers",
        "LSAT",
        "nothing: it comes with this package",
        "Bock & Lieberman (1970), Psychometrika 35, 179-197",
        "a published table",
        5_000,
        1_000,
        5,
        layout="bundled",
    ),
    Source(
        "uci_student",
        "UCI student academics",
        "answers",
        "UCI",
        "Sapfile1.arff",
        "https://archive.ics.uci.edu/dataset/467/student+academics+performance",
        _UCI,
        524,
        131,
        4,
        files=("Sapfile1.arff",),
        archives=("student+academics+performance.zip",),
        layout="student_arff",
        first_users=131,
        remarks=(
            "Right = Best or Vg, in class X (tnp), class XII (twp), internal assessment (iap), end semester (esp). A "
            "file of 300 students has the same name; its first 131 are the paper's.",
        ),
    ),
    Source(
        "grades_three",
        "Three grades in Portuguese",
        "answers",
        "3 GRADES",
        "student.zip or student-por.csv",
        "https://archive.ics.uci.edu/dataset/320/student+performance",
        _UCI,
        1_947,
        649,
        3,
        files=("student-por.csv",),
        archives=("student+performance.zip", "student.zip"),
        layout="student_grades",
        remarks=("Right = strictly above the median of that grade. The paper says 648 students; the file has 649.",),
    ),
    Source(
        "riiid",
        "RIIID",
        "answers",
        "RIIID",
        "train.csv of the competition 'Riiid Answer Correctness Prediction'",
        "https://www.kaggle.com/competitions/riiid-test-answer-prediction/data",
        "the competition's rules: research, no redistribution",
        99_271_300,
        393_656,
        13_523,
        files=("riiid-test-answer-prediction/train.csv", "riiid/train.csv"),
        archives=("riiid-test-answer-prediction.zip",),
        layout="riiid",
        remarks=(
            "The first answer of a user to a question counts.",
            "The paper has 6,311 questions and 22,906 users of it; how they were chosen is not published "
            "(the authors' file is called records_qmin=1000_smin=10000.txt), so cutoff='authors' changes nothing here.",
        ),
    ),
    Source(
        "ednet_kt1_sample",
        "EdNet-KT1 sample",
        "answers",
        "RIIID",
        _NEUTRAL.format(name="ednet_kt1_sample", value="response"),
        "https://github.com/riiid/ednet",
        "CC BY-NC 4.0",
        269_257,
        3_090,
        11_427,
        remarks=("A stand-in for RIIID: the public log of the same application, not the same file.",),
    ),
    Source(
        "hetrec",
        "HetRec 2011 MovieLens",
        "ratings",
        "HETREC",
        "hetrec2011-movielens-2k-v2.zip",
        "https://grouplens.org/datasets/hetrec-2011/",
        "research use, no redistribution without permission",
        855_598,
        2_113,
        10_109,
        files=("user_ratedmovies.dat",),
        archives=("hetrec2011-movielens-2k-v2.zip", "hetrec2011-movielens-2k.zip"),
        layout="hetrec",
        least_item=10,
    ),
    Source(
        "ml_100k",
        "ML-100K",
        "ratings",
        "ML-100K",
        "ml-100k.zip",
        "https://grouplens.org/datasets/movielens/100k/",
        _MOVIELENS,
        100_000,
        943,
        1_682,
        files=("u.data",),
        archives=("ml-100k.zip",),
        layout="ml_100k",
        least_item=10,
        remarks=("The authors' program ran ml-latest-small under this name.",),
    ),
    Source(
        "ml_latest_small",
        "ML-latest-small",
        "ratings",
        "ML-100K",
        "ml-latest-small.zip",
        "https://grouplens.org/datasets/movielens/latest/",
        "MovieLens terms: redistribution only under the same terms",
        100_836,
        610,
        9_724,
        files=("ml-latest-small/ratings.csv",),
        archives=("ml-latest-small.zip",),
        layout="ml_csv",
        least_item=25,
        remarks=("What the authors' program ran as 'ML-100K': 1,050 items with at least 25 ratings.",),
    ),
    Source(
        "ml_1m",
        "ML-1M",
        "ratings",
        "ML-1M",
        "ml-1m.zip",
        "https://grouplens.org/datasets/movielens/1m/",
        _MOVIELENS,
        1_000_209,
        6_040,
        3_706,
        files=("ml-1m/ratings.dat",),
        archives=("ml-1m.zip",),
        layout="ml_dat",
        least_item=10,
        remarks=(
            "The paper's 3,952 items are the range of the ids; 3,706 have a rating. The authors' program drops items "
            "with fewer than 10 ratings, their notebook shows 2,514 items (at least 50).",
        ),
    ),
    Source(
        "eachmovie",
        "EachMovie",
        "ratings",
        "EACH MOVIE",
        "Vote.txt (withdrawn by its publisher in 2004)",
        "https://grouplens.org/datasets/eachmovie/",
        "research use; withdrawn, not to be redistributed",
        2_811_983,
        61_265,
        1_623,
        files=("Vote.txt",),
        archives=("eachmovie.zip",),
        layout="eachmovie",
        least_item=50,
    ),
    Source(
        "eachmovie_sample",
        "EachMovie sample",
        "ratings",
        "EACH MOVIE",
        _NEUTRAL.format(name="eachmovie_sample", value="rating"),
        "https://grouplens.org/datasets/eachmovie/",
        "research use; withdrawn, not to be redistributed",
        1_009_402,
        5_055,
        1_619,
        least_item=50,
        remarks=("Part of EachMovie: 5,055 users with at least 121 ratings each, 36 % of all ratings.",),
    ),
    Source(
        "ml_10m",
        "ML-10M",
        "ratings",
        "ML-10M",
        "ml-10m.zip",
        "https://grouplens.org/datasets/movielens/10m/",
        _MOVIELENS,
        10_000_054,
        69_878,
        10_677,
        files=("ml-10M100K/ratings.dat", "ml-10m/ratings.dat"),
        archives=("ml-10m.zip",),
        layout="ml_dat",
        least_item=25,
    ),
    Source(
        "ml_20m",
        "ML-20M",
        "ratings",
        "ML-20M",
        "ml-20m.zip",
        "https://grouplens.org/datasets/movielens/20m/",
        _MOVIELENS,
        20_000_263,
        138_493,
        26_744,
        files=("ml-20m/ratings.csv",),
        archives=("ml-20m.zip",),
        layout="ml_csv",
        least_item=50,
        least_user=40,
    ),
    Source(
        "bx",
        "Book-Crossing",
        "ratings",
        "BX",
        "BX-CSV-Dump.zip",
        "http://www2.informatik.uni-freiburg.de/~cziegler/BX/",
        "free for research with citation (Ziegler et al. 2005)",
        1_149_780,
        105_283,
        340_556,
        files=("BX-Book-Ratings.csv",),
        archives=("BX-CSV-Dump.zip",),
        layout="book_crossing",
        least_item=50,
        remarks=(
            "Rating 0 stands for 'seen, not rated'; the authors' program counts it as a rating, and so is it here.",
            "The page is reported to be offline; copies of the archive keep its name.",
        ),
    ),
    Source(
        "bx_subset",
        "Book-Crossing subset",
        "ratings",
        "BX",
        _NEUTRAL.format(name="bx_subset", value="rating"),
        "http://www2.informatik.uni-freiburg.de/~cziegler/BX/",
        "free for research with citation (Ziegler et al. 2005)",
        272_678,
        2_946,
        17_384,
        least_item=50,
        remarks=(
            "Part of Book-Crossing: users with fewer than 20 and items with fewer than 10 ratings are gone.",
            "Rating 0 stands for 'seen, not rated'; the authors' program counts it as a rating, and so is it here.",
        ),
    ),
    Source(
        "book_genome",
        "Book-Genome",
        "ratings",
        "BOOK-GENOME",
        "book_dataset.zip",
        "https://grouplens.org/datasets/book-genome/",
        "GroupLens terms: non-commercial",
        5_152_656,
        350_332,
        9_374,
        files=("book_dataset/raw/ratings.json", "raw/ratings.json", "book_genome/ratings.json"),
        archives=("book_dataset.zip", "book_genome.zip"),
        layout="book_genome",
        least_item=50,
        least_user=25,
    ),
    Source(
        "jester1",
        "Jester 1",
        "ratings",
        None,
        "jester_dataset_1_1.zip, its table saved as jester-data-1.csv",
        "https://eigentaste.berkeley.edu/dataset/",
        "free for research with citation (Goldberg et al. 2001)",
        1_810_455,
        24_983,
        100,
        files=("jester-data-1.csv", "jester-data-1.txt", "jester-data-1.dat", "jester-data-1.tsv", "jester-data-1.xls"),
        archives=("jester_dataset_1_1.zip", "jester-data-1.zip"),
        layout="jester",
        least_item=10,
        remarks=("Not in the paper's tables, but in the authors' program.",),
    ),
    _only_neutral(
        "assist2009",
        "ASSISTments 2009",
        "https://sites.google.com/site/assistmentsdata/",
        "ASSISTments terms: research",
        270_449,
        4_150,
        16_891,
    ),
    _only_neutral(
        "assist2017",
        "ASSISTments 2017",
        "https://sites.google.com/view/assistmentsdatamining/",
        "ASSISTments terms: research",
        389_692,
        1_705,
        3_162,
    ),
    _only_neutral(
        "statics",
        "Engineering statics 2011",
        "https://pslcdatashop.web.cmu.edu/",
        "PSLC DataShop terms",
        184_774,
        330,
        1_223,
    ),
    _only_neutral(
        "helm_lite",
        "HELM Lite",
        "https://crfm.stanford.edu/helm/lite/",
        "none stated",
        150_030,
        30,
        5_001,
    ),
    _only_neutral(
        "nlu_test_sets",
        "NLU test sets",
        "https://github.com/nyu-mll/nlu-test-sets",
        "none stated (Vania et al., ACL 2021)",
        7_448_040,
        90,
        82_756,
    ),
    _only_neutral(
        "metabench_gsm8k",
        "metabench GSM8K",
        "https://github.com/adkipnis/metabench",
        "CC BY-NC-SA 4.0",
        1_255_209,
        5_041,
        249,
    ),
)


def source_named(name: str) -> Source:
    """The dataset of this name; "ML-1M" and "ml-1m" mean ml_1m."""
    wanted = str(name).lower().replace("-", "_").replace(" ", "_")
    for source in SOURCES:
        if source.name == wanted:
            return source
    raise OptionError(f"there is no dataset {name!r}; there are {', '.join(source.name for source in SOURCES)}.")
