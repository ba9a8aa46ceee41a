"""The work of `score`, `update` and `link`: what is done with banks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rich.text import Text

from spectral_irt.analysis.folder import counts_of, file_digests, persons_record, result_paths
from spectral_irt.analysis.summary import people
from spectral_irt.bank import Bank
from spectral_irt.bank import equate as equate_banks
from spectral_irt.bank.drift import DRIFTED
from spectral_irt.bank.equating import ALL_ITEMS, pairs_of_forms
from spectral_irt.bank.linking import errors_in_words
from spectral_irt.bank.score import score as score_with
from spectral_irt.bank.storage import is_bank
from spectral_irt.bank.storage import undo as undo_load
from spectral_irt.bank.update import update_with_drift
from spectral_irt.cli.boards import score_models
from spectral_irt.cli.data import save_bank
from spectral_irt.cli.fit_options import IDLE_SEED, Abilities
from spectral_irt.cli.models import SHORTLIST
from spectral_irt.cli.options import Call, Reading, mean_and_sd, shareable
from spectral_irt.cli.options import options_in_use as changed_options
from spectral_irt.cli.terminal import Mode, Progress, say_written, whole_record
from spectral_irt.errors import OptionError, OutputError, StaleBankError
from spectral_irt.files import all_or_nothing, errors_with_target, refuse_inputs
from spectral_irt.persons_file import check_persons_file, is_persons_file, write_persons_file
from spectral_irt.tables import write_json
from spectral_irt.terminal import console, person_table, plain_table, say, show_findings, show_lines, show_source
from spectral_irt.text import QUESTIONNAIRE, TEST, listed, number, printable
from spectral_irt.xlsx import is_workbook, refuse_foreign, write_table

if TYPE_CHECKING:
    from spectral_irt.bank import DataSet, Equating, Link
    from spectral_irt.bank.drift import Drift
    from spectral_irt.bank.score import Scores
    from spectral_irt.data import Finding, Responses
    from spectral_irt.data.block import Floats, Ints

RECORD = "score.json"
TABLES = (".csv", ".parquet", ".xlsx")
SHOWN_CHANGES = 10  # items of an update that are shown: those that moved most
MOST_PAIRS = 400  # of forms that are equated at once
SHOWN_PAIRS = 6  # of which an example is shown
COMMON = 12  # common items of a link that are shown


def _input(files: Sequence[str], reading: Reading, responses: Responses) -> dict[str, Any]:
    """What was read, for a record."""
    source = {"source": responses.source, "files": list(files), "digests": file_digests(files)}
    about = {**source, "reading": reading.options_of_read(files)}
    return {"input": shareable(about), "counts": counts_of(responses), "data_digest": responses.digest()}


def _place_of_table(path: Path | None) -> list[Path]:
    """Where one table goes; an error where its name does not say what it is, or it is another program's workbook."""
    if path is None:
        return []
    if path.suffix.lower() not in TABLES:
        raise OutputError(f"{str(path)!r} ends in none of .csv, .parquet and .xlsx; name the file by its kind.")
    if is_workbook(path):
        refuse_foreign(path)
    return [path]


def score_people(
    files: Sequence[str],
    reading: Reading,
    abilities: Abilities,
    mode: Mode,
    call: Call,
    *,
    bank: Path,
    output: Path | None,
    population: str | None,
    ignore_unknown: bool,
) -> None:
    """Score the people in these files with a bank, or with a short list of prompts."""
    ability, draws = abilities.ability
    if abilities.seed is not None and ability != "pv":
        raise OptionError(IDLE_SEED)
    if (bank / SHORTLIST).is_file():
        _refuse_for_short_list(bank, ability, population, ignore_unknown)
        score_models(files, reading, call, bank / SHORTLIST, output, mode)
        return
    if population is not None and ability not in ("eap", "pv"):
        raise OptionError(f"--population is for --ability eap and pv; --ability {ability} needs none. Leave it out.")
    prior = None if population is None else mean_and_sd(population, "--population", "0.5,1.2")
    plausible_values = {"draws": draws or 5, "seed": abilities.seed or 0}
    stale: list[Path] = []
    if output is not None and is_persons_file(output):
        check_persons_file(output)
        targets = [output]
    elif output is None or (output.suffix.lower() in TABLES and not output.is_dir()):
        targets = _place_of_table(output)
    else:
        targets, stale = result_paths(output, ["persons"], parquet=False, record=RECORD)
    loaded = Bank.load(bank)
    with all_or_nothing(targets, inputs=[*reading.inputs(files), bank], stale=stale) as drafts:
        with Progress() as progress:
            responses = reading.read_for_bank(loaded, files, progress, call)
            progress.say("abilities")
            scores = score_with(
                loaded, responses, ability, population=prior, ignore_unknown=ignore_unknown, **plausible_values
            )

        def record() -> dict[str, Any]:
            persons = persons_record(scores.persons, ability)
            if ability == "pv":
                persons["plausible_values"] = plausible_values
            about = {
                "outputs": [target.name for target in targets],
                "bank": {"folder": str(bank), "items": loaded.n_items, "persons": loaded.n_persons},
                **_input(files, reading, responses),
                "scale": None if loaded.scale.is_logits else asdict(loaded.scale),
                "population": None if scores.population is None else asdict(scores.population),
                "persons": persons,
                "reliability": None if scores.reliability is None else scores.reliability.to_dict(),
            }
            return whole_record(about, scores.findings)

        for draft, target in zip(drafts, targets, strict=True):
            with errors_with_target(target):
                if target.suffix.lower() == ".json":
                    write_json(draft, record())
                elif is_persons_file(target):
                    write_persons_file(draft, target, scores.persons)
                else:
                    write_table(draft, target, "persons", scores.persons)
    mode.end(partial(_show_scores, loaded, bank, responses, scores, targets), record, scores.findings)


def _refuse_for_short_list(place: Path, ability: str, population: str | None, ignore_unknown: bool) -> None:
    """An error where an option of scoring with a bank was given."""
    was_given = {
        "--ability": ability != "wle",
        "--population": population is not None,
        "--ignore-unknown": ignore_unknown,
    }
    for flag, given in was_given.items():
        if given:
            raise OptionError(f"{flag} is for a bank, and {str(place)!r} is a short list of prompts; leave it out.")


def _show_scores(bank: Bank, folder: Path, responses: Responses, scores: Scores, targets: list[Path]) -> None:
    out = console()
    show_source(out, responses)
    binary = responses.thresholds.binary
    words = TEST if binary else QUESTIONNAIRE
    say(out, person_table(scores.persons, out.width, whole=out.whole, points=not binary, words=words))
    say(out)
    lines = []
    if scores.reliability is not None:
        lines.append(("people", people(scores.reliability, words)))
    content = f"{bank.n_items:,} items, calibrated with {bank.n_persons:,} people"
    lines.append(("bank", f"{printable(folder)}: {content}"))
    if scores.population is not None:
        prior = scores.population
        origin = f"estimated from {prior.persons:,} people" if prior.persons else "as given"
        lines.append(("prior", f"population with mean {prior.mean:z.2f} and sd {prior.sd:.2f}, {origin}"))
    show_lines(out, lines)
    if scores.findings:
        say(out)
        show_findings(out, scores.findings)
    say(out)
    say_written(targets, "add -o FILE for all people.")


def update_bank(
    bank: Path,
    files: Sequence[str],
    reading: Reading,
    mode: Mode,
    call: Call,
    *,
    output: Path | None,
    repeats: Literal["error", "skip"],
    undo: bool,
    history: bool,
) -> None:
    """Add the answers in these files to a bank; or take back its last load, or list its loads."""
    if undo or history:
        flag = "--undo" if undo else "--history"
        was_given = {"FILE": bool(files), "-o": output is not None, "--history": undo and history}
        was_given |= {f"--{name.replace('_', '-')}": True for name in changed_options(reading)}
        for name, given in was_given.items():
            if given:
                raise OptionError(f"{flag} is about the bank alone; leave out {name}.")
        if undo:
            _undo(bank, mode)
        else:
            _history(bank, mode)
        return
    if not files:
        raise OptionError("update needs the files with the new answers, or --undo or --history.")
    place = bank if output is None else output
    if output is not None:
        is_bank(output)  # an error where no bank can be saved
    refuse_inputs([place], reading.inputs(files))
    before = Bank.load(bank)
    with Progress() as progress:
        responses = reading.read_for_bank(before, files, progress, call)
        while True:
            progress.say("updating the bank")
            after, drift = update_with_drift(before, responses, repeats=repeats, threads=call.threads)
            changed = after is not before
            held_back = mode.strict and bool(drift.drifted.any())
            if held_back or (not changed and output is None):
                break
            try:
                after.save(place, tell=progress.say)
                break
            except StaleBankError:  # another update was quicker: ours comes after it
                progress.say("the bank has changed meanwhile; reading it again")
                before = Bank.load(bank)
    update = Update(before, after, responses, drift, place, held_back)

    def record() -> dict[str, Any]:
        about = {"folder": str(place), "changed": changed and not held_back, **_sizes(before, after)}
        changes = {"drifted": drift.records(), "moved": update.change_records()}
        return {"bank": about, **changes, **_input(files, reading, responses)}

    mode.end(partial(_show_update, update), record, update.findings)


@dataclass(frozen=True, eq=False)
class Update:
    """A bank before and after new responses; how far these put its items from where it had them; where it goes, and
    whether it was held back."""

    before: Bank
    after: Bank
    responses: Responses
    drift: Drift
    place: Path
    held_back: bool

    @property
    def findings(self) -> list[Finding]:
        """What reading and updating had to say that was not known of the bank before."""
        findings = [*self.responses.notes]
        for finding in self.after.findings:
            if finding.code == DRIFTED and self.held_back:
                findings.append(replace(finding, sentence=f"{finding.sentence} The bank is unchanged (--strict)."))
            elif finding not in self.before.findings:
                findings.append(finding)
        return findings

    @cached_property
    def change(self) -> Floats:
        """How far each item of the bank moves."""
        return self.after.difficulty[: self.before.n_items] - self.before.difficulty

    @cached_property
    def largest_changes(self) -> Ints:
        """The items that move most, farthest first."""
        size = np.nan_to_num(np.abs(self.change))
        order = np.argsort(-size, kind="stable")[:SHOWN_CHANGES]
        return order[size[order] > 0]

    def change_records(self) -> list[dict[str, Any]]:
        """The largest changes as data."""
        return [
            {
                "item": self.before.items.item(k),
                "before": self.before.difficulty[k],
                "se_before": self.before.se[k],
                "after": self.after.difficulty[k],
                "se_after": self.after.se[k],
                "moved": self.change[k],
            }
            for k in self.largest_changes.tolist()
        ]


def _sizes(before: Bank, after: Bank) -> dict[str, dict[str, int]]:
    """How much there is in a bank, before and after."""
    return {
        name: {"items": bank.n_items, "persons": bank.n_persons, "responses": int(bank.n.sum())}
        for name, bank in (("before", before), ("after", after))
    }


def _content(bank: Bank) -> str:
    """How much there is in a bank, in words."""
    return f"{int(bank.n.sum()):,} answers of {bank.n_persons:,} people to {bank.n_items:,} items"


def _show_update(update: Update) -> None:
    out = console()
    before = update.before
    after = update.after
    place = (printable(update.place), "bold")
    show_source(out, update.responses)
    if after is before:
        say(out, Text.assemble("Nothing is new: the bank in ", place, " has these answers already."))
        return
    order = update.largest_changes
    if len(order):
        heads = ["moved most", "before", "se", "after", "se", "moved"]
        columns = [before.items[order].tolist()]
        for values in (before.difficulty, before.se, after.difficulty, after.se, update.change):
            columns.append([number(value, 3, none="") for value in values[order]])
        say(out, plain_table(heads, columns, out.width, whole=out.whole))
        say(out)
    lines = [("before", _content(before)), ("after", _content(after))]
    se_before = before.se
    se_after = after.se[: before.n_items]
    in_both = np.isfinite(se_before) & np.isfinite(se_after) & ~before.calibration.anchored
    if in_both.any():
        medians = f"{np.median(se_before[in_both]):.3f} before, {np.median(se_after[in_both]):.3f} after"
        lines.append(("median se", medians))
    show_lines(out, lines)
    if update.findings:
        say(out)
        show_findings(out, update.findings)
    say(out)
    if update.held_back:
        say(out, Text("Nothing was written: the bank is as it was."))
    else:
        say(out, Text.assemble("The bank is in ", place, "."))


def _undo(folder: Path, mode: Mode) -> None:
    """`update --undo`: the bank before its last load."""
    with Progress() as progress:
        before, after = undo_load(folder, tell=progress.say)
    undone = before.data[len(after.data) :]

    def show() -> None:
        out = console()
        for load in undone:
            say(out, Text(f"Undone: {printable(load.source)}, {_size_of_load(load)}."))
        words = ("The bank in ", (printable(folder), "bold"), f" is as it was before: {_content(after)}.")
        say(out, Text.assemble(*words))

    def record() -> dict[str, Any]:
        about = {"folder": str(folder), "changed": True, **_sizes(before, after)}
        return {"bank": about, "undone": [asdict(load) for load in undone]}

    mode.end(show, record)


def _history(folder: Path, mode: Mode) -> None:
    """`update --history`: the loads of the bank."""
    bank = Bank.load(folder)

    def show() -> None:
        out = console()
        heads = ["load", "people", "items", "answers", "by", "checksum"]
        columns = [
            [printable(load.source) for load in bank.data],
            *([f"{getattr(load, name):,}" for load in bank.data] for name in ("persons", "items", "responses")),
            [load.how for load in bank.data],
            [load.digest.removeprefix("sha256:")[:12] for load in bank.data],
        ]
        say(out, plain_table(heads, columns, out.width, whole=out.whole))
        say(out)
        say(out, Text.assemble((printable(folder), "bold"), f": {_content(bank)}."))

    def record() -> dict[str, Any]:
        about = {"folder": str(folder), "changed": False, "items": bank.n_items, "persons": bank.n_persons}
        return {"bank": {**about, "responses": int(bank.n.sum())}, "loads": [asdict(load) for load in bank.data]}

    mode.end(show, record)


def _size_of_load(load: DataSet) -> str:
    return f"{load.responses:,} answers of {load.persons:,} people to {load.items:,} items, by {load.how}"


def link_banks(
    a: Path,
    b: Path,
    mode: Mode,
    *,
    output: Path | None,
    method: Literal["robust", "mean"],
    common_items: Path | None,
    equate: Path | None,
    forms: str | None,
) -> None:
    """Link two banks, and write and show what comes of it."""
    if output is not None:
        is_bank(output)  # an error where no bank can be saved
    files = [*_place_of_table(common_items), *_place_of_table(equate)]
    first = Bank.load(a)
    second = Bank.load(b)
    link = first.link(second, method)
    if forms is not None and equate is None:
        raise OptionError("--forms says which forms --equate FILE is about; name the file as well.")
    equated = [] if equate is None else _equated_forms(first, second, link, forms)
    tables = []
    if common_items is not None:
        tables.append(("common items", link.columns()))
    if equated:
        parts = [equating.columns() for equating in equated]
        tables.append(("equating", {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}))
    folders = [] if output is None else [output]

    def save() -> None:
        for folder in folders:
            save_bank(link.apply(second), folder)

    with all_or_nothing(files, inputs=[a, b], folders=folders, last=save) as drafts:
        for draft, path, (name, columns) in zip(drafts, files, tables, strict=True):
            with errors_with_target(path):
                write_table(draft, path, name, columns)
    outputs = [*folders, *files]

    def record() -> dict[str, Any]:
        names = ("method", "shift", "shift_se", "link_error", "statistic", "df", "p", "excess")
        numbers = {name: getattr(link, name) for name in names}
        banks = {"a": str(a), "b": str(b), "common": len(link.item), "drifted": list(link.drifted)}
        return {**banks, **numbers, "outputs": list(map(str, outputs))}

    def show() -> None:
        _show_link(link, ((a, first), (b, second)), equated)
        say_written(outputs, "add -o DIR for B on A's scale, or --common-items FILE for the common items.")

    mode.end(show, record, [link.finding])


def _equated_forms(first: Bank, second: Bank, link: Link, forms: str | None) -> list[Equating]:
    """Every pair of forms that was asked for."""
    pairs = pairs_of_forms(first, second, forms)
    if len(pairs) > MOST_PAIRS:
        raise OptionError(
            f"A has {len(first.forms):,} forms and B {len(second.forms):,}, which are {len(pairs):,} pairs, and at "
            f"most {MOST_PAIRS} are equated at once; name two with --forms FORM,FORM."
        )
    return [equate_banks(first, second, form_a=form_a, form_b=form_b, linked=link) for form_a, form_b in pairs]


def _example(scores: Equating) -> str:
    """One score in the middle, as an example."""
    middle = len(scores.scores[0]) // 2
    highest_a = len(scores.scores[0]) - 1
    highest_b = len(scores.scores[1]) - 1
    se = scores.se[0][middle]
    error = f" (se {se:.2f})" if np.isfinite(se) else ""
    name_a, name_b = (_of_a_form(printable(name)) for name in scores.names)
    equated = f"{scores.equated[0][middle]:.1f} of {highest_b:,} on {name_b}"
    return f"{middle:,} of {highest_a:,} on {name_a} is {equated}{error}"


def _of_a_form(name: str) -> str:
    """A form in words: "A: 2026B" is form 2026B of A.

    >>> _of_a_form("A: 2026B"), _of_a_form("A: form 2"), _of_a_form("B")
    ("A's form 2026B", "A's form 2", 'B')
    """
    bank, colon, form = name.partition(": ")
    if not colon:
        return bank
    if form == ALL_ITEMS:
        return f"{bank}, all items"
    # Forms without a name of their own are called "form 1", "form 2".
    named = form if form.startswith("form ") else f"form {form}"
    return f"{bank}'s {named}"


def _show_link(link: Link, banks: tuple[tuple[Path, Bank], ...], equated: list[Equating]) -> None:
    out = console()
    order = np.lexsort((-np.abs(link.difference), ~link.drift))[:COMMON]
    heads = ["item", "in A", "in B", "difference", "se", "robust z", ""]
    columns: list[list[Any]] = [link.item[order].tolist()]
    for values in (link.difficulty_a, link.difficulty_b, link.difference, link.se, link.robust_z):
        columns.append([f"{value:z.2f}" for value in values[order]])
    columns.append([_drift_of(link, k) for k in order])
    say(out, plain_table(heads, columns, out.width, whole=out.whole))
    n_others = len(link.item) - len(order)
    if n_others > 0:
        say(out, Text(f"and {n_others:,} more that moved less; --common-items FILE has all", style="dim"))
    say(out)
    lines = [
        (name, f"{printable(folder)}: {bank.n_items:,} items, {bank.n_persons:,} people")
        for name, (folder, bank) in zip("AB", banks, strict=True)
    ]
    lines += _lines_on_link(link)
    lines += [("equating", _example(equating)) for equating in equated[:SHOWN_PAIRS]]
    if len(equated) > SHOWN_PAIRS:
        lines.append(("", f"and {len(equated) - SHOWN_PAIRS:,} more pairs of forms, in the file"))
    if link.doubtful:
        lines.append(("warning", link.doubtful))
    show_lines(out, lines)
    say(out)


def _drift_of(link: Link, item: int) -> str:
    """In which bank a common item that drifted is harder; "" for the others."""
    if not link.drift[item]:
        return ""
    return "harder in B" if link.difference[item] > 0 else "harder in A"


def _lines_on_link(link: Link) -> list[tuple[str, str]]:
    """The linking constant, which items drifted, and the error of the link."""
    lines = [("link", f"A = B {link.shift:+z.3f} logits (se {link.shift_se:.3f}), {link.method}")]
    if link.by_design:
        lines.append(("anchors", link.by_design))
    if not link.given.all():
        drift = f"none of {link.common} is beyond a robust z of 3"
        if link.drifted:
            use = "left out of the link" if link.method == "robust" else "in the link, unless --method robust"
            drift = f"{listed(link.drifted)}, of {link.common}, beyond a robust z of 3; {use}"
        lines.append(("drift", drift))
    if link.tells_agreement:
        lines.append(("agreement", link.agreement))
    source = f"from {errors_in_words(link.basis)}"
    lines.append(("error", f"{link.link_error:.3f} for the link, carried into the standard errors of B ({source})"))
    return lines
