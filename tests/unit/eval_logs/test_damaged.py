"""Damaged and odd logs: whatever is in them, a sentence that names the file, never a bare exception."""

import contextlib
import json
import random
import zipfile

import pytest

import harness_logs as make
import spectral_irt as si
from reading import notes
from spectral_irt.errors import OptionError, ReadError, SpectralIrtError
from spectral_irt.eval_logs.collect import collect, find_logs

SCORES = [1.0, 0.0, 1.0, 1.0, 0.0]
DEEP = "[" * 100_000 + "]" * 100_000
ODD = [None, True, 3, -1, 1.5, float("nan"), float("inf"), 10**400, "", "text", [], [1, "x"], {}, {"a": [1]}]


def read(path, **options):
    files = find_logs([path])
    return None if files is None else collect(files, **options).responses


def inspect_log(scores, **how):
    return make.inspect_log("m", [make.inspect_sample(k, x) for k, x in enumerate(scores)], **how)


def plain(folder, scores):
    path = folder / "2025-01-01T00-00-00_arc_x.json"
    path.write_text(json.dumps(inspect_log(scores)))
    return path


def ever(folder, scores):
    rows = [(str(k), x > 0 if x == x else x, x) for k, x in enumerate(scores)]
    return make.every_eval_ever(folder / "x_samples.jsonl", "m", rows)


LOGS = {
    "lm_eval": lambda at, scores=SCORES: make.lm_eval(at, "m", {"acc": scores}),
    "every_eval_ever": lambda at, scores=SCORES: ever(at, scores),
    "inspect json": lambda at, scores=SCORES: plain(at, scores),
    "inspect eval": lambda at, scores=SCORES: make.inspect_eval(at / "a.eval", inspect_log(scores, status="error")),
    "helm": lambda at, scores=SCORES: make.helm(
        at, "m", [(f"id{k}", 0, {"em": x}, None) for k, x in enumerate(scores)]
    ),
    "lighteval": lambda at, scores=SCORES: make.lighteval(at, "org/m", {"em": scores}),
}


def places(value, path=()):
    """Where something else could stand in a JSON document."""
    found = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        found += places(one, (*path, key))
    return found


def changed(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def only_sentences(log):
    with contextlib.suppress(SpectralIrtError):
        read(log)
    with contextlib.suppress(SpectralIrtError):
        si.read(log)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOGS)
def test_flipped_and_missing_bytes(tmp_path, kind):
    rng = random.Random(1)
    log = LOGS[kind](tmp_path)
    whole = log.read_bytes()
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 4])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        log.write_bytes(bytes(data if rng.random() < 0.7 else data[: rng.randrange(1, len(data))]))
        only_sentences(log)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lm_eval", "every_eval_ever", "inspect json", "inspect eval", "helm", "helm spec"])
def test_values_of_other_types(tmp_path, kind):
    """Every place of a log in turn holds something else: another type, NaN, a number too large."""
    rng = random.Random(2)
    log = LOGS[kind.removesuffix(" spec")](tmp_path)
    target = log.parent / "run_spec.json" if kind == "helm spec" else log
    lines = kind in ("lm_eval", "every_eval_ever")
    members = {}
    if kind == "inspect eval":
        with zipfile.ZipFile(log) as archive:
            members = {name: json.loads(archive.read(name)) for name in archive.namelist()}
        document = {name: members[name] for name in ("header.json", "summaries.json")}
    else:
        document = [json.loads(line) for line in log.open()] if lines else json.loads(target.read_text())
    for place in places(document):
        new = changed(document, place, rng.choice(ODD))
        if kind == "inspect eval":
            with zipfile.ZipFile(log, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, value in (new if isinstance(new, dict) else {}).items():
                    archive.writestr(name, json.dumps(value))
        elif lines:
            target.write_text("\n".join(map(json.dumps, new if isinstance(new, list) else [new])))
        else:
            target.write_text(json.dumps(new))
        only_sentences(log)


@pytest.mark.parametrize("kind", ["lm_eval", "every_eval_ever", "inspect json", "helm"])
def test_json_that_is_too_deep(tmp_path, kind):
    log = LOGS[kind](tmp_path)
    text = log.read_text()
    for deep in (text.replace("1.0", DEEP, 1), DEEP, text + "\n" + text.replace("1.0", DEEP, 1)):
        log.write_text(deep)
        only_sentences(log)


@pytest.mark.parametrize(("at", "value"), [(8, 1), (10, 99), (10, 93), (10, 14), (10, 12)])
def test_members_that_cannot_be_unpacked(tmp_path, at, value):
    """Encrypted; packed in ways that are not."""
    log = LOGS["inspect eval"](tmp_path)
    data = bytearray(log.read_bytes())
    for start in (k for k in range(len(data) - 4) if data[k : k + 4] == b"PK\x01\x02"):
        data[start + at] = value
    log.write_bytes(bytes(data))
    with pytest.raises(ReadError, match=r"a\.eval is not as inspect_ai writes it"):
        read(log)


@pytest.mark.parametrize(
    ("kind", "place", "value", "said"),
    [
        ("every_eval_ever", (2, "evaluation"), [1], r"x_samples\.jsonl: line 3 has no 'is_correct'"),
        ("helm", (3, "train_trial_index"), "two", r"per_instance_stats\.json: entry 4 is not as HELM writes it"),
        ("inspect json", ("samples", 1, "scores"), [1], r"_arc_x\.json: sample 2 is not as inspect_ai writes it"),
    ],
)
def test_where_a_log_is_odd(tmp_path, kind, place, value, said):
    log = LOGS[kind](tmp_path)
    lines = kind == "every_eval_ever"
    document = [json.loads(line) for line in log.open()] if lines else json.loads(log.read_text())
    new = changed(document, place, value)
    log.write_text("\n".join(map(json.dumps, new)) if lines else json.dumps(new))
    with pytest.raises(ReadError, match=said):
        read(log)


@pytest.mark.parametrize("kind", ["lm_eval", "every_eval_ever", "helm", "lighteval"])
@pytest.mark.parametrize("n", [1, 3])
def test_a_score_that_is_no_number_is_wrong_and_said(tmp_path, kind, n):
    log = LOGS[kind](tmp_path, [float("nan")] * n + SCORES[n:])
    more = {"response": "is_correct"} if kind == "every_eval_ever" else {}
    for responses in (read(log), si.read(log, **more)):
        assert responses.n_responses == len(SCORES)
        assert responses.scores.sum() == sum(SCORES[n:])
        (note,) = (one for one in responses.notes if one.code == "nan_scores")
        assert note.severity == "warning"
        assert f"{n} samples" in note.sentence


@pytest.mark.parametrize("kind", ["lm_eval", "helm", "lighteval"])
@pytest.mark.parametrize("threshold", [-2, -0.75, 0.5])
def test_a_score_that_is_no_number_is_above_no_threshold(tmp_path, kind, threshold):
    scores = [-1.0, -3.0, float("nan"), -0.5, 2.0]
    log = LOGS[kind](tmp_path, scores)
    for responses in (read(log, threshold=threshold), si.read(log, threshold=threshold)):
        assert responses.to_dense().tolist() == [[float(score > threshold) for score in scores]]


def test_inspect_counts_what_is_unscored_and_what_it_does_not_know(tmp_path):
    """NaN is inspect_ai's own sign of a sample without a verdict; a text that it cannot turn into a number is 0."""
    log = make.inspect_eval(tmp_path / "a.eval", inspect_log(["C", "I", float("nan"), "maybe", 1.0]))
    for responses in (read(log), si.read(log)):
        assert responses.n_responses == 4
        assert responses.scores.sum() == 2
        assert [one.code for one in responses.notes] == ["unscored_samples", "nan_scores"]


def test_a_stray_filter_loses_no_answers_in_silence(tmp_path):
    log = LOGS["lm_eval"](tmp_path)
    lines = [json.loads(line) for line in log.open()]
    lines[0]["filter"] = "stray"
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(OptionError, match=r"'acc,stray', 'acc,none'"):
        read(log)
    found = read(log, metric=["acc,none"])
    assert (found.n_responses, found.n_items) == (4, 5)
    assert list(notes(found)) == ["unscored_samples"]


def test_a_leaderboard_says_it_once(tmp_path):
    for model, first in (("a", float("nan")), ("b", 1.0), ("c", 0.0)):
        make.lm_eval(tmp_path, model, {"acc": [first, *SCORES, 0.0, float(model == "b")]})
    codes = [one.code for one in si.Leaderboard.read(tmp_path).findings]
    assert codes.count("nan_scores") == 1
