"""Rounds over a shared folder: the coordinator puts questions there, and the sites their answers.

round001.json            what the coordinator asks
round001.north.json      what the site "north" answers
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from spectral_irt.errors import FederationError, OptionError, SitesMissing, listed, option
from spectral_irt.estimators.spectral import SpectralRasch
from spectral_irt.federated.coordinating import responses_of_sites
from spectral_irt.federated.protocol import Answer, Round
from spectral_irt.federated.site import LEAST, answer_round
from spectral_irt.responses import Responses

LOOK = 0.2  # seconds between two looks into the folder
FILE = re.compile(r"round(\d{3,})\.json")
NAME = re.compile(r"[\w-]+")  # a part of a file's name


def round_file(folder: Path, number: int) -> Path:
    return folder / f"round{number:03d}.json"


def answer_file(question: Path, site: str) -> Path:
    """Where a site's answer to this round goes."""
    return question.with_name(f"{question.stem}.{site}.json")


def check_name(site: str) -> None:
    if not NAME.fullmatch(site):
        raise OptionError(f"a site is called {site!r}; use letters, digits, - and _, as in 'north-2'.")


class SharedFolder:
    """What the coordinator sees of the folder.

    Parameters
    ----------
    folder : path
    sites : names
        Whose answers make a round complete.
    wait : float
        Seconds to wait for them; then `SitesMissing`, and whoever runs it again goes on from there.
    """

    def __init__(self, folder: str | Path, sites: Sequence[str], *, wait: float = 0.0) -> None:
        self.folder, self.sites, self.wait = Path(folder), list(sites), wait
        for site in self.sites:
            check_name(site)
        if not self.sites or len(set(self.sites)) < len(self.sites):
            raise OptionError(option("sites"), " names the sites that take part, each once, as in 'north,south'.")
        if self.folder.exists() and not self.folder.is_dir():
            raise OptionError(f"{str(folder)!r} is a file, not a folder that sites share.")

    @property
    def study(self) -> str:
        """The name of the study: that of its first round, or a new one."""
        first = round_file(self.folder, 1)
        return Round.read(first).study if first.exists() else secrets.token_hex(4)

    def ask(self, asked: Round) -> list[Answer]:
        """Every site's answer to this round, which is put into the folder if it is not there yet."""
        question = round_file(self.folder, asked.number)
        if not question.exists():
            asked.write(question)
        elif not (there := Round.read(question)).same(asked) or there.study != asked.study:
            raise FederationError(
                f"{str(question)!r} asks something else than this calibration does now. Rounds of one folder belong to "
                "one calibration, with the same options, sites and answers; start again in an empty folder."
            )
        end = time.monotonic() + self.wait
        while True:
            answers = self._answers(question, asked)
            missing = [site for site in self.sites if site not in answers]
            if not missing:
                return [answers[site] for site in self.sites]
            if time.monotonic() >= end:
                raise SitesMissing(
                    f"round {asked.number} waits for {len(missing)} of {len(self.sites)} sites: {listed(missing)}. "
                    f"{'It' if len(missing) == 1 else 'Each'} answers with: spectral-irt site FILE --name NAME --round "
                    f"{question}. Then run this again."
                )
            time.sleep(LOOK)

    def _answers(self, question: Path, asked: Round) -> dict[str, Answer]:
        found: dict[str, tuple[Path, Answer]] = {}
        for path in sorted(self.folder.glob(f"{question.stem}.*.json")):
            answer = Answer.read(path)
            if answer.study != asked.study:
                raise FederationError(
                    f"{str(path)!r} belongs to study {answer.study!r}, and this one is {asked.study!r}. Take it away."
                )
            if answer.number != asked.number or answer.kind != asked.kind:
                raise FederationError(
                    f"{str(path)!r} answers round {answer.number} ({answer.kind}), not round {asked.number} "
                    f"({asked.kind}). Take it away, and have the site answer {str(question)!r}."
                )
            if answer.site not in self.sites:
                raise FederationError(
                    f"{str(path)!r} is from site {answer.site!r}, which is not one of those that take part: "
                    f"{listed(self.sites)}. Take it away, or start again with it among ",
                    option("sites"),
                    ".",
                )
            if answer.site in found:
                raise FederationError(
                    f"site {answer.site!r} answered round {asked.number} twice: {str(found[answer.site][0])!r} and "
                    f"{str(path)!r}. Keep the one that counts, and take the other away."
                )
            found[answer.site] = (path, answer)
        return {site: answer for site, (_, answer) in found.items()}


def federated_responses(
    folder: str | Path, sites: Sequence[str], *, wait: float = 0.0, progress: Callable[[str], None] | None = None
) -> Responses:
    """Responses that stay with the sites, for a fit of the chain."""
    shared = SharedFolder(folder, sites, wait=wait)
    return responses_of_sites(shared.ask, shared.study, progress or (lambda text: None))


def federate(
    folder: str | Path,
    sites: Sequence[str],
    *,
    weighting: str = "ability",
    regularization: str | float = "auto",
    wait: float = 0.0,
    progress: Callable[[str], None] | None = None,
) -> SpectralRasch:
    """Calibrate items that several sites know, from sums that they put into a shared folder.

    The estimate is that of `SpectralRasch(refine=False, se="one-pass")` on all their answers together. Each call reads
    what is in the folder, asks the next round, and raises `SitesMissing` when an answer is not there (yet); call it
    again when it is. There is no other state: it goes on where the files are.

    Parameters
    ----------
    folder : path
        Where rounds and answers are; `answer_rounds(folder, ...)` or `spectral-irt site` is what sites do.
    sites : names
        The sites that take part.
    weighting, regularization
        As in `SpectralRasch`.
    wait : float
        Seconds to wait for each round's answers.
    progress : callable, optional
        Told in a few words what is going on.

    Examples
    --------
    >>> import tempfile, spectral_irt as si
    >>> from spectral_irt.errors import SitesMissing
    >>> answers = si.datasets.load_lsat()
    >>> north, south = answers.take_users(range(500)), answers.take_users(range(500, answers.n_users))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     while True:
    ...         try:
    ...             fit = si.federate(folder, ["north", "south"])
    ...             break
    ...         except SitesMissing:
    ...             _ = si.answer_rounds(folder, north, name="north"), si.answer_rounds(folder, south, name="south")
    >>> together = si.SpectralRasch(refine=False, se="one-pass").fit(answers)
    >>> bool(abs(fit.difficulty_ - together.difficulty_).max() < 1e-10)
    True
    """
    estimator = SpectralRasch(weighting=weighting, regularization=regularization, refine=False, se="one-pass")
    return estimator.fit(federated_responses(folder, sites, wait=wait, progress=progress), progress=progress)


def open_rounds(place: Path, site: str) -> list[Path]:
    """The rounds of a folder that this site has not answered; or the one round that was named."""
    if not place.exists():
        raise FederationError(
            f"there is no round or folder of rounds {str(place)!r}; check the name and the directory."
        )
    if not place.is_dir():
        if answer_file(place, site).exists():
            raise FederationError(
                f"site {site!r} has answered this round already: {str(answer_file(place, site))!r}. To answer it anew, "
                "take that file away first, before the coordinator has gone on."
            )
        return [place]
    rounds = sorted(path for path in place.iterdir() if FILE.fullmatch(path.name))
    return [path for path in rounds if not answer_file(path, site).exists()]


def answer_rounds(folder: str | Path, responses: Responses, *, name: str, least: int = LEAST) -> list[Path]:
    """Answer every round of a folder that this site has not answered: the files written. See `federate`.

    Parameters
    ----------
    folder : path
        The shared folder, or one round in it.
    responses : Responses
        The people of this site; only sums over them are written.
    name : str
        The name of the site.
    least : int
        Items that fewer people answered are left out, and named in the answer.

    Examples
    --------
    >>> import tempfile, spectral_irt as si
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     si.answer_rounds(folder, si.datasets.load_quiz(), name="north")
    []
    """
    check_name(name)
    written = []
    for question in open_rounds(Path(folder), name):
        said = answer_question(question, Round.read(question), responses, name=name, least=least)
        said.write(answer_file(question, name))
        written.append(answer_file(question, name))
    return written


def answer_question(question: Path, asked: Round, responses: Responses, *, name: str, least: int) -> Answer:
    """The answer to one round of a folder; the site's first answer, if it lies there, says which items it must have."""
    said = answer_round(responses, asked, site=name, least=least)
    first = answer_file(round_file(question.parent, 1), name)
    if asked.number > 1 and first.exists():
        said.check_items(Answer.read(first).items.tolist(), asked.items)
    return said
