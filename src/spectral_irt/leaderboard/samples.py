"""Answers written by the instance-level schema of Every Eval Ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from spectral_irt.errors import OptionError
from spectral_irt.eval_logs.every_eval_ever import lines_of
from spectral_irt.files import all_or_nothing, naming
from spectral_irt.leaderboard.source import BENCHMARK, Source

ENDING = "_samples.jsonl"


def write_samples(source: Source, path: Path, *, inputs: Iterable[str | Path] = ()) -> Path:
    """One `*_samples.jsonl` file of all answers; it can be read again."""
    if not path.name.endswith(ENDING):
        raise OptionError(f"{str(path)!r} does not end in {ENDING}, as such files are called.")
    with all_or_nothing([path], inputs=inputs) as (draft,), naming(path), draft.open("w", encoding="utf-8") as file:
        for line in lines_of(_rows(source)):
            file.write(line + "\n")
    return path


def _rows(source: Source) -> Iterator[tuple[str, str, str, bool]]:
    answers = source.answers
    benchmarks = source.attributes.get(BENCHMARK)
    for position, model in enumerate(answers.persons.tolist()):
        alone = answers.take_persons([position])
        counts, scores = alone.item_counts, alone.item_scores
        for k in counts.nonzero()[0]:
            benchmark = "benchmark" if benchmarks is None else str(benchmarks[k])
            yield str(model), benchmark, str(answers.items[k]).removeprefix(f"{benchmark}/"), bool(scores[k])
