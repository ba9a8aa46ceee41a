"""Whether the package could be released from this commit: `make release-check`.

Builds the wheel and the source distribution twice and compares them, lets twine check them, installs each into empty
environments of every supported Python that is found, and uses what was installed as a stranger would: the demo, a fit
with a report, the start page of the app, one thing of every extra. The documentation is built from the unpacked source
distribution. Ends with code 1 at the first step that fails, and prints what it said.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SUPPORTED = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
REQUIRED = SUPPORTED[0]
# One thing of every extra that needs its packages: it ends without an error where they are installed.
SMOKE = {
    "app": "import spectral_irt.app.server",
    "cluster": "from spectral_irt.engine.dask import connect; import distributed; "
    "client = distributed.Client(processes=False, dashboard_address=None); connect(client); client.close()",
    "database": "import duckdb, spectral_irt as si; duckdb.connect('d.duckdb').execute("
    "\"create table a as select * from read_csv('quiz.csv', all_varchar = true)\"); "
    "assert si.read(sql='select * from a', database='duckdb:d.duckdb', key='quiz_key.csv').n_items == 30",
    "formats": "import pandas, pyreadstat, numpy, spectral_irt as si; "
    "frame = pandas.DataFrame(numpy.tile([[1, 0, 1], [0, 1, 0], [0, 0, 1]], (10, 1)), columns=['q1', 'q2', 'q3']); "
    "pyreadstat.write_sav(frame, 'a.sav'); assert si.read('a.sav').n_items == 3",
    "word": "import docx, spectral_irt as si; answers = si.datasets.load_lsat(); "
    "si.SpectralRasch().fit(answers).analyse(answers).report('a.docx'); assert docx.Document('a.docx').tables",
}


class StepError(Exception):
    """A step did not do what it should; the text says what it said."""


def run(*command: str | Path, cwd: Path = ROOT, environment: dict[str, str] | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise StepError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def step(sentence: str) -> None:
    print(f"- {sentence}", flush=True)


def build(checkout: Path, folder: Path) -> list[Path]:
    """The source distribution and the wheel that is made from it, with the time of the last commit in them."""
    epoch = run("git", "log", "-1", "--format=%ct", cwd=checkout).strip()
    run(sys.executable, "-m", "build", "-o", folder, checkout, environment={"SOURCE_DATE_EPOCH": epoch})
    return sorted(folder.iterdir())


def check_reproducible(first: list[Path], second: list[Path]) -> None:
    for one, other in zip(first, second, strict=True):
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, other)]
        if digests[0] != digests[1]:
            raise StepError(f"{one.name} differs between two builds: {digests[0]} and {digests[1]}")


def check_version(names: list[str]) -> None:
    """One version everywhere: in the package, CITATION.cff, the changelog, and a tag of this commit, if it has one."""
    source = (ROOT / "src/spectral_irt/__init__.py").read_text(encoding="utf-8")
    version = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)[0]
    for name in names:
        if f"-{version}" not in name:
            raise StepError(f"{name} is not of version {version}, which src/spectral_irt/__init__.py says")
    if f"\nversion: {version}\n" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        raise StepError(f"CITATION.cff does not say version {version}")
    if not re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE):
        raise StepError(f"CHANGELOG.md has no section {version}")
    tags = [tag for tag in run("git", "tag", "--points-at", "HEAD").split() if tag.startswith("v")]
    if tags and f"v{version}" not in tags:
        raise StepError(f"this commit has the tag {tags[0]}, and its version is {version}")


def pythons() -> Iterator[tuple[str, str]]:
    """Every supported Python that runs here: its version and its path."""
    for version in SUPPORTED:
        name = f"python{version}"
        places = [shutil.which(name), *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/{name}"))]
        for place in filter(None, places):
            if subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:
                yield version, place
                break
        else:
            if version == REQUIRED:
                raise StepError(f"there is no Python {REQUIRED} here, which is the least that is needed")
            step(f"Python {version}: not here, not tested")


def installed(python: str, what: str, folder: Path) -> Path:
    """An empty environment with `what` installed; the folder of its programs."""
    run(python, "-m", "venv", folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what)
    return programs


def use(programs: Path, folder: Path) -> None:
    """What the README does, in an empty folder."""
    folder.mkdir()
    command = programs / "spectral-irt"
    run(command, "demo", "-o", "demo-results", cwd=folder)
    run(command, "demo", "--files", ".", cwd=folder)
    run(command, "check", "quiz.csv", "--key", "quiz_key.csv", "--missing", "9", cwd=folder)
    words = ["fit", "quiz.csv", "--key", "quiz_key.csv", "--missing", "9", "--group", "region"]
    run(command, *words, "-o", "results", "--report", "report.html", cwd=folder)
    for name in ("results/items.csv", "results/fit.json", "report.html"):
        if not (folder / name).stat().st_size:
            raise StepError(f"the fit wrote an empty {name}")


def show_start_page(programs: Path, folder: Path) -> None:
    """The app is started, its start page is fetched, and the app is ended."""
    with (folder / "app.txt").open("w+", encoding="utf-8") as said:
        app = subprocess.Popen(
            [programs / "spectral-irt", "app", "--no-browser"], cwd=folder, stdout=said, stderr=subprocess.STDOUT
        )
        try:
            page = _start_page(folder / "app.txt", app)
        finally:
            app.terminate()
            app.wait(30)
    if "<form" not in page:
        raise StepError(f"the start page of the app has no form:\n{page[:500]}")


def _start_page(said: Path, app: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and app.poll() is None:
        address = re.search(r"http://\S+", said.read_text(encoding="utf-8"))
        if address:
            with urllib.request.urlopen(address[0], timeout=30) as answer:
                page: str = answer.read().decode("utf-8")
            return page
        time.sleep(0.2)
    raise StepError(f"the app did not say an address:\n{said.read_text(encoding='utf-8')}")


def check_inspect_ai(programs: Path, checkout: Path) -> None:
    run(programs / "python", "-m", "pip", "install", "--quiet", "inspect-ai", "pytest", "hypothesis")
    test = "tests/unit/test_inspect.py"
    said = run(programs / "python", "-m", "pytest", "-q", "-o", "addopts=", test, cwd=checkout)
    if "skipped" in said:
        raise StepError(f"{test} was skipped:\n{said}")


def check_documentation(source_distribution: Path, folder: Path) -> None:
    with tarfile.open(source_distribution) as archive:
        archive.extractall(folder, filter="data")
    [unpacked] = folder.iterdir()
    run(sys.executable, "-m", "sphinx", "-W", "-q", unpacked / "docs", folder / "site", cwd=unpacked)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # What is committed, and nothing that lies beside it.
        run("git", "clone", "--quiet", ROOT, folder / "checkout")
        files = build(folder / "checkout", folder / "dist")
        check_reproducible(files, build(folder / "checkout", folder / "again"))
        check_version([path.name for path in files])
        step(f"built twice, the same bytes: {', '.join(path.name for path in files)}")
        run(sys.executable, "-m", "twine", "check", "--strict", *files)
        step("twine check --strict")
        source_distribution, wheel = files if files[0].suffix == ".gz" else files[::-1]
        for version, python in pythons():
            programs = installed(python, f"{wheel}[app]", folder / f"wheel-{version}")
            use(programs, folder / f"used-{version}")
            show_start_page(programs, folder / f"used-{version}")
            step(f"Python {version}: wheel installed; demo, check, fit, report and start page of the app")
            if version != REQUIRED:
                continue
            run(programs / "python", "-m", "pip", "install", "--quiet", f"{wheel}[all]", "pandas")
            for extra, statement in SMOKE.items():
                run(programs / "python", "-c", statement, cwd=folder / f"used-{version}")
                step(f"extra {extra}: works")
            check_inspect_ai(programs, folder / "checkout")
            step("metric of inspect_ai: tested with its mock model")
            programs = installed(python, str(source_distribution), folder / "source")
            use(programs, folder / "used-source")
            step(f"Python {version}: source distribution installed; demo, check, fit and report")
        check_documentation(source_distribution, folder / "unpacked")
        step("documentation built from the source distribution, without a warning")
    print("This commit can be released: CONTRIBUTING.md says what is left to do.")


if __name__ == "__main__":
    try:
        main()
    except StepError as error:
        print(f"not releasable: {error}", file=sys.stderr)
        sys.exit(1)
