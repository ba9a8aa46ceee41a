"""Small tables that come with the package: LSAT, a simulated quiz, a simulated questionnaire, rated essays, simulated
logs of language models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from spectral_irt.data.responses import Responses

HERE = Path(__file__).parent

OMITTED = "9"  # how an item of the quiz that somebody left out is coded; one that was not in the booklet is empty

MODELS = ("kiwi-70b", "kiwi-8b", "kiwi-1b", "plum-34b", "plum-7b", "fig-40b", "fig-3b", "date-13b", "date-2b")
ABILITY = (2.1, 1.1, -0.6, 1.9, 0.8, 1.8, 0.1, 0.9, -0.3)
TASKS = {"arithmetic": 150, "reading": 150}
PASSAGE = 5  # prompts of "reading" about one text
WRONG_KEY = ("arithmetic", 17)
WHEN = "2026-03-02T09-00-00.000000"


def load_lsat() -> Responses:
    """Section 6 of the Law School Admission Test: 1,000 persons, 5 items, complete; the classic small example.

    From the table of frequencies of the 30 answer patterns that occur in Bock & Lieberman (1970), Psychometrika 35,
    179-197.

    >>> load_lsat()
    Responses(1,000 persons x 5 items, 5,000 responses, 76.4% right)
    """
    text = (HERE / "lsat6.csv").read_text(encoding="ascii")
    header, *lines = text.splitlines()
    table = np.array([line.split(",") for line in lines], dtype=np.int64)
    answers = np.repeat(table[:, :-1], table[:, -1], axis=0)
    responses = Responses.from_wide(answers, items=header.split(",")[:-1])
    return replace(responses, persons=np.arange(1, len(answers) + 1), source="LSAT section 6")


def lsat_text() -> str:
    """The same as a CSV file: a row for each person, a column for each item."""
    responses = load_lsat()
    rows = zip(responses.persons.tolist(), responses.to_dense().astype(int).tolist(), strict=True)
    lines = [["person", *responses.items.tolist()], *([person, *row] for person, row in rows)]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)


def quiz_files() -> tuple[Path, Path]:
    """The answers of the quiz and its key, as CSV files; see `load_quiz`."""
    return HERE / "quiz.csv", HERE / "quiz_key.csv"


def load_quiz() -> Responses:
    """A science quiz, simulated: 800 people, 30 multiple-choice items (A to D), scored by its key.

    Everybody has one of two booklets, with 10 items in common and 10 of its own; the columns `region` and `booklet` are
    about people (`study.dif("region")`). The answers follow the Rasch model but for two faults: the key of `density`
    names a wrong answer, and `tides` is easier by one logit for people from the coast.
    `scripts/simulate_quiz.py` draws it.

    >>> load_quiz()
    Responses(800 persons x 30 items, 15,679 responses, 51.6% right)
    """
    from spectral_irt.reading import read

    answers, key = quiz_files()
    return read([str(answers)], key=str(key), missing=[OMITTED], people=["region", "booklet"])


def writing_file() -> Path:
    """The ratings of `load_writing` as a CSV file: a row for each student and rater, a column for each domain."""
    return HERE / "writing.csv"


def load_writing() -> Responses:
    """Essays of 372 students, rated by 21 raters on four domains from 0 to 3; complete.

    From the open book "Rasch Measurement Theory Analysis in R" by Wind and Hua (CC0); `language` is 1 or 2.

    >>> load_writing()
    Responses(372 persons x 84 items, 31,248 responses in up to 4 categories)
    """
    from spectral_irt.reading import read

    return read(writing_file(), person="student", facets="rater", people="language", ordered=True)


def survey_file() -> Path:
    """A questionnaire, simulated, as a CSV file: 600 people, ten items answered with never to always.

    q4 is worded the other way round, and q7 is harder to agree with for men. `scripts/simulate_survey.py` draws it."""
    return HERE / "survey.csv"


def log_texts() -> Iterator[tuple[Path, str]]:
    """Where each log lies in a folder of runs, and its text: the sample logs of lm-evaluation-harness.

    The answers follow the Rasch model but for two faults. The key of prompt 17 of "arithmetic" is wrong, so that better
    models fail it; and a model that misreads a text of "reading" misses more of its five prompts than chance has."""
    random = np.random.default_rng(20260302)
    difficulty = {task: random.normal(0.0, 1.3, count) for task, count in TASKS.items()}
    for model, ability in zip(MODELS, ABILITY, strict=True):
        for task, count in TASKS.items():
            passages = random.normal(0.0, 0.8, -(-count // PASSAGE)) * (task == "reading")
            shown = difficulty[task] - np.repeat(passages, PASSAGE)[:count]
            right = random.random(count) < 1 / (1 + np.exp(shown - ability))
            if task == WRONG_KEY[0]:
                right[WRONG_KEY[1]] = random.random() > 1 / (1 + np.exp(-1.5 * (ability - 0.5)))
            lines = [json.dumps(_sample(task, k, bool(right[k]))) for k in range(count)]
            yield Path(model) / f"samples_{task}_{WHEN}.jsonl", "\n".join(lines) + "\n"


def _sample(task: str, k: int, right: bool) -> dict[str, object]:
    document: dict[str, object] = {"question": f"question {k}"}
    if task == "reading":
        document["passage"] = f"text {1 + k // PASSAGE}"
    answer, about = ["1" if right else "0"], {"filter": "none", "metrics": ["acc"], "doc_hash": f"{task}-{k}"}
    record = {"doc_id": k, "doc": document, "target": "1", "resps": [answer], "filtered_resps": answer}
    return {**record, **about, "acc": float(right)}
