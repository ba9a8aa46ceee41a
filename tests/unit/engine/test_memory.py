"""A budget changes where numbers are kept, never the numbers."""

import errno
import gc
import json
import os
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import make_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import spectral_irt as si
from spectral_irt.conditional.information import by_item
from spectral_irt.data.builder import IN_MEMORY
from spectral_irt.data.facets import MANY_COMBINATIONS
from spectral_irt.data.patterns import distinct_rows, distinct_sets
from spectral_irt.engine import LocalEngine
from spectral_irt.engine import base as memory
from spectral_irt.engine.base import Budget
from spectral_irt.errors import OptionError, OutputError
from spectral_irt.text import in_bytes, size_text
from split import in_blocks, is_mapped


def without_room(budget):
    budget.explicit, budget.total, budget.room = False, 0, 0  # as a machine without free memory has it
    return budget


@pytest.fixture
def nothing(monkeypatch, tmp_path):
    """A budget with no room at all, under which even the smallest array goes to disk."""
    monkeypatch.setattr(memory, "SMALL", 1)
    return without_room(Budget("1GB", tmp_path))


def answers(persons=300, items=12, p=0.7):
    return si.simulate.rasch(persons, items, design="sampled", p=p, seed=0).responses


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bits_when_everything_is_on_disk(nothing, threads, monkeypatch):
    free = in_blocks(answers(), 75)
    here = si.SpectralRasch().fit(free.with_engine(LocalEngine(threads)))
    mapped = replace(free, blocks=tuple(nothing.keep(block, IN_MEMORY) for block in free.blocks))
    assert all(is_mapped(block.items) and is_mapped(block.indptr) for block in mapped.blocks)
    monkeypatch.setattr(memory, "_in_force", nothing)
    there = si.SpectralRasch().fit(mapped.with_engine(LocalEngine(threads)))
    assert nothing.spill.written > 0
    assert nothing.used == 0
    assert np.array_equal(here.difficulty_, there.difficulty_)
    assert np.array_equal(here.se_, there.se_)


def test_what_is_there_first_stays_and_room_comes_back(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "SMALL", 1)
    budget = Budget("1GB", tmp_path)
    budget.room = 2_000
    first, second = np.arange(200.0), np.arange(200.0)
    assert budget.keep(first) is first
    assert budget.keep((first, "text"))[0] is first
    assert budget.used == 1_600
    third = budget.keep(second)
    assert is_mapped(third)
    assert np.array_equal(third, second)
    del first
    gc.collect()
    assert budget.used == 0
    assert budget.keep(second) is second


def test_a_fit_writes_few_bytes_of_an_answer(monkeypatch, tmp_path):
    responses = in_blocks(answers(1_800, 100), 450)
    assert responses.n_responses > 100_000
    monkeypatch.setattr(memory, "SMALL", 1)
    budget = without_room(si.set_memory("1GB", tmp_path))
    try:
        si.SpectralRasch().fit(responses.with_engine(LocalEngine(1)))
        # Items by right and wrong, the chain's factor, score and link: four bytes each; and what there is of people.
        assert 16 < budget.spill.written / responses.n_responses < 22
    finally:
        si.set_memory()


def test_tables_of_shared_sets_are_counted(nothing, monkeypatch):
    here, there = answers(2_000, 10, p=1.0), answers(2_000, 10, p=1.0)
    assert here.shared is not None
    monkeypatch.setattr(memory, "_in_force", nothing)
    for a, b in zip(here.shared.sets, there.shared.sets, strict=True):
        for name in ("right", "together"):
            assert is_mapped(getattr(b, name))
            assert np.array_equal(getattr(a, name), getattr(b, name))
    assert np.array_equal(si.SpectralRasch().fit(here).difficulty_, si.SpectralRasch().fit(there).difficulty_)


def test_patterns_of_everybody_are_on_disk_where_there_is_no_room(nothing, monkeypatch):
    """With missing responses nearly everybody has a pattern: as many items as responses. Traced are the work on a block
    and the room for all items, four bytes each, before it goes to disk."""
    data = si.simulate.partial_credit(4_000, 60, categories=4, design="sampled", p=0.5, seed=1)
    responses = in_blocks(data.responses, 100)
    here = distinct_rows(responses)
    in_order, _ = by_item(here.rows)
    monkeypatch.setattr(memory, "_in_force", nothing)
    tracemalloc.start()
    try:
        there = distinct_sets(responses)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(here.count) > 3_900
    assert is_mapped(there.rows.items)
    assert taken < 8 * responses.n_responses
    np.testing.assert_array_equal(there.of_person, here.of_person)
    for name in ("items", "indptr", "counts", "scores", "max_scores"):
        np.testing.assert_array_equal(getattr(there.rows, name), getattr(in_order, name))


def test_matrices_that_share_numbers_still_share_them(nothing):
    matrix = sparse.random(30, 20, density=0.3, random_state=1, format="csr")
    before = matrix.toarray()
    part = nothing.keep(make_dataclass("Part", ["rows", "columns"], frozen=True)(matrix, matrix.T))
    assert is_mapped(part.rows.data)
    assert is_mapped(part.rows.indices)
    part.rows.data[:] *= 2  # a kernel that fills the memory of an old part
    assert np.array_equal(part.columns.toarray(), 2 * before.T)


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "0", "4XB", "nan", "1e9", "four GB"])
def test_sizes_that_are_none(text):
    with pytest.raises(OptionError, match="it is a size such as"):
        in_bytes(text, "memory")


def test_a_budget_too_small_says_what_is_needed(monkeypatch):
    many = {"persons": 1_000_000, "items": 500, "threads": 2, "answers": 10**8}
    said = r"`memory` is 100 MB, and 1,000,000 people and 500 items with 2 threads need at"
    with pytest.raises(OptionError, match=said):
        Budget("100MB").reserve(**many)
    Budget("2GB").reserve(**many)
    Budget("500MB").reserve(persons=80_000, items=2_000, threads=2, answers=5_700_000)  # which takes 450 in all
    with pytest.raises(OptionError, match="not a folder"):
        Budget("1GB", "/nowhere/at/all")
    monkeypatch.setattr(memory, "_in_force", Budget("100MB"))
    with pytest.raises(OptionError, match="30 people and 15 thresholds with"):
        si.SpectralPartialCredit().fit(si.simulate.partial_credit(30, 5, categories=4, seed=1).responses)


@pytest.mark.parametrize(
    ("size", "peak"),
    [  # megabytes, measured by benchmarks/memory.py on two threads
        ({"persons": 4_000, "items": 100, "answers": 400_000}, 156),
        ({"persons": 40_000, "items": 2_000, "answers": 1_975_000}, 169),
        ({"persons": 100_000, "items": 5_000, "answers": 4_975_000}, 215),
        ({"persons": 60_000, "items": 2_000, "answers": 5_850_000}, 223),
        ({"persons": 200_000, "items": 500, "answers": 9_525_000}, 295),
        ({"persons": 50_000, "items": 80, "answers": 1_000_000, "kind": "ordered"}, 201),
        ({"persons": 40_000, "items": 800, "answers": 1_790_000, "kind": "ordered"}, 247),
        ({"persons": 250_000, "items": 400, "answers": 4_560_000, "kind": "ordered"}, 316),
        ({"persons": 100_000, "items": 2_000, "answers": 9_070_000, "kind": "ordered"}, 419),
        ({"persons": 100_000, "items": 10_000, "answers": 1_000_000, "kind": "ratings", "parameters": 520}, 359),
    ],
)
def test_limits_are_above_measured_peaks_and_at_most_half_as_much_again(size, peak):
    many_items = size.get("kind") is None and size["items"] > 1_000  # where "auto" may form no matrix
    needed = memory.WorkSize(threads=2, **size).bytes_needed(matrices=not many_items)
    assert peak <= needed / 1e6 <= 1.5 * peak
    small = Budget(needed - 1)
    with pytest.raises(OptionError, match="need at least"):
        small.reserve(threads=2, matrices_certain=not many_items, **size)
    enough = Budget(needed)
    enough.reserve(threads=2, matrices_certain=not many_items, **size)
    assert enough.room == memory.KEPT * min(size["answers"], memory.BLOCK)  # of one block, which was reckoned


RESULTS = Path(__file__).parents[3] / "docs" / "results" / "memory.json"
ROWS = list(*json.loads(RESULTS.read_text(encoding="utf-8"))["tables"].values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['kind']}, {row['size']}")
def test_rows_on_the_page_keep_the_rule_and_are_of_this_reckoning(row):
    """Peak and limit, measured; the limit is what the constants of today say, in the words of a message."""
    assert 2 / 3 <= row["peak / limit"] <= 1
    kind = {"right-wrong": "binary"}.get(row["kind"], row["kind"])
    thresholds = row["items"] * (1 if kind == "binary" else 4)
    size = {"persons": row["persons"], "items": thresholds, "answers": row["responses"], "kind": kind}
    if kind == "ratings":
        size |= {"items": thresholds * row["raters"], "parameters": thresholds + row["raters"]}
        size["combinations_have_tables"] = row["items"] * row["raters"] <= MANY_COMBINATIONS
    work = memory.WorkSize(threads=2, **size)
    limits = [size_text(work.bytes_needed(matrices=matrices)) for matrices in (False, True)]
    assert row["limit MB"] * 1e6 in [in_bytes(limit, "memory") for limit in limits]


def test_temporary_arrays_are_those_of_the_blocks_at_work():
    def work(answers, threads=4, **more):
        return memory.WorkSize(persons=answers // 20, items=50, answers=answers, threads=threads, **more).work

    assert work(memory.BLOCK) == work(memory.BLOCK, threads=1)  # one block, whatever the number of threads
    assert work(2 * memory.BLOCK) == 2 * work(memory.BLOCK)
    assert work(20 * memory.BLOCK) == 4 * work(memory.BLOCK)
    assert work(20 * memory.BLOCK, kind="ordered") > work(20 * memory.BLOCK)


def test_matrices_that_may_not_be_needed_refuse_nobody():
    many = {"persons": 100_000, "items": 5_000, "threads": 2, "answers": 5_000_000}
    with pytest.raises(OptionError, match="need at least 2 GB"):
        Budget("600MB").reserve(**many)
    small = Budget("600MB")
    small.reserve(**many, matrices_certain=False)
    assert small.room > 0
    with pytest.raises(OptionError, match="need at least 2 GB"):  # as soon as it is known that they are
        small.reserve(**many)
    large = Budget("4GB")
    large.reserve(**many, matrices_certain=False)
    room = large.room
    large.reserve(**many)
    assert large.room == room  # what the answers fill is not taken from the matrices


def test_only_a_fit_that_comes_to_need_matrices_asks_for_them(monkeypatch):
    from spectral_irt.estimators import spectral_errors

    monkeypatch.setattr(spectral_errors, "QUICK_ITEMS", 20)
    monkeypatch.setattr(memory, "SQUARE", 10**9)  # no budget has room for them
    monkeypatch.setattr(memory, "_in_force", Budget("1GB"))
    responses = answers(2_000, 60)
    assert si.SpectralRasch().fit(responses).se_method_ == "one-pass"
    for se in ("dense", "information"):
        with pytest.raises(OptionError, match="2,000 people and 60 items"):
            si.SpectralRasch(se=se).fit(responses)
    monkeypatch.setattr(spectral_errors, "chosen_method", lambda rest, contraction: "dense")  # as of a slow chain
    with pytest.raises(OptionError, match="2,000 people and 60 items"):
        si.SpectralRasch().fit(responses)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("persons", "items", "each"),
    [(7_000, 300, 72), (3_000, 1_000, 60), (80_000, 200, 3), (4_000, 6_000, 60), (600, 40, 20)],
)
def test_the_reckoning_is_what_arrays_take(persons, items, each, tmp_path):
    """All that may be on disk is there; the rest, which is traced, is no more than reckoned, nor a small part of it."""
    responses = answers(persons, items, each / items)
    budget = without_room(si.set_memory("4GB", tmp_path))
    tracemalloc.start()
    try:
        si.SpectralRasch(threads=1).fit(responses)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        si.set_memory()
    counts = {"persons": persons, "items": items, "answers": responses.n_responses}
    budget.total = 4 * 10**9
    budget.reserve(**counts, threads=1)
    reckoned = budget.total - budget.room - memory.PROGRAM
    assert taken < 1.1 * reckoned + 10**7
    assert reckoned < 6 * taken + 4 * 10**7


def test_many_arrays_share_a_file(tmp_path):
    """A mapping keeps its file open, and a process may have a thousand of them."""
    spill = memory.Spill(tmp_path)
    kept = [spill.put(np.full(30_000, k)) for k in range(1_000)]
    assert [int(array[-1]) for array in kept] == list(range(1_000))
    assert len({id(array.base.base.obj) for array in kept}) < 4


def test_a_full_disk_is_an_error_and_leaves_nothing(nothing, monkeypatch, tmp_path):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    nothing.keep(np.arange(50.0))
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OutputError, match=r"the disk is full.* Allow more `memory`, or name a folder .*spill="):
        nothing.keep(np.arange(50.0))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_whatever_ends_the_process(tmp_path, number):
    program = (
        "import signal, sys, time, numpy as np\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # in the background it may be ignored
        "from spectral_irt.engine.base import Budget\n"
        "b = Budget('1GB', sys.argv[1]); b.room = 0\n"
        "kept = b.keep(np.zeros(10**6)); print('there', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, stderr=-3)
    assert process.stdout is not None
    assert process.stdout.readline() == b"there\n"
    process.send_signal(number)
    process.wait()
    process.stdout.close()
    assert not list(tmp_path.iterdir())


def test_memory_is_counted_once_and_whole_while_any_view_of_it_lives():
    budget = Budget("4GB")
    whole = np.zeros(200_000)
    views = [whole[:100_000], whole[100_000:]]
    for view in views:
        budget.keep(view)
    size = whole.nbytes
    del whole, view
    assert budget.used == size
    del views[0]
    assert budget.used == size  # the other holds all of it
    views.clear()
    assert budget.used == 0
