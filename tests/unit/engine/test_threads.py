"""The local engine: the same bits whatever the number of threads, the order of the blocks kept."""

import os
import pickle
import threading
from itertools import pairwise

import numpy as np
import pytest

from spectral_irt import SpectralRasch
from spectral_irt.engine import LocalEngine
from spectral_irt.engine.base import concatenate
from spectral_irt.errors import OptionError
from spectral_irt.simulate import rasch

N_ITEMS = 40


@pytest.fixture(scope="module")
def blocks():
    """Blocks of unlike sizes, with sums that depend on the order of addition in their last bits."""
    whole = rasch(600, N_ITEMS, design="sampled", p=0.3, seed=1).responses.blocks[0]
    cuts = [0, 1, 50, 51, 200, 340, 341, 600]
    return tuple(whole.take(np.arange(low, high)) for low, high in pairwise(cuts))


def weighted(block, v):
    """Something like an inflow: wrong answers, weighted by what the person got right."""
    rows = block.pattern(len(v)) @ v
    rows[1::2] = rows[0::2] / 3
    rows[0::2] = 0
    return block.pattern(len(v)).T @ rows


def size_and_total(block, v):
    return np.array([block.n_persons, block.n_responses]), weighted(block, v)


def test_sum_has_the_same_bits_for_any_number_of_threads(blocks):
    v = np.random.default_rng(2).lognormal(size=N_ITEMS)
    alone = LocalEngine(threads=1).sum(weighted, blocks, v)
    for threads in (2, 3, 8, None):
        engine = LocalEngine(threads)
        for _ in range(5):
            assert engine.sum(weighted, blocks, v).tobytes() == alone.tobytes()
    expected = sum(weighted(block, v) for block in blocks)
    np.testing.assert_array_equal(alone, expected)


@pytest.mark.parametrize("threads", [1, 4])
def test_map_keeps_the_order(blocks, threads):
    later = threading.Event()

    def first_ends_last(block):
        if block is not blocks[0]:
            later.set()
        elif threads > 1:
            assert later.wait(60)
        return block.n_persons

    assert list(LocalEngine(threads).map(first_ends_last, blocks)) == [block.n_persons for block in blocks]


def test_threads_work_at_the_same_time(blocks):
    together = threading.Barrier(2, timeout=60)
    assert LocalEngine(2).sum(lambda block: together.wait() * 0, blocks[:2]) == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_given_out_are_not_changed(blocks, threads):
    """A kernel may hand out an array that it keeps; adding must not write into it."""
    kept = [np.ones(3) for _ in blocks]
    number = {id(block): k for k, block in enumerate(blocks)}
    total = LocalEngine(threads).sum(lambda block: kept[number[id(block)]], blocks)
    assert total.tolist() == [len(blocks)] * 3
    assert all(part.tolist() == [1, 1, 1] for part in kept)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_kernel_reaches_the_caller(blocks, threads):
    def broken(block):
        raise ZeroDivisionError("in the kernel")

    engine = LocalEngine(threads)
    with pytest.raises(ZeroDivisionError, match="in the kernel"):
        engine.sum(broken, blocks)
    assert engine.sum(lambda block: block.n_persons, blocks) == 600  # and the engine still works


def test_numbers_of_threads(monkeypatch):
    for threads in (0, -2):
        with pytest.raises(OptionError, match=f"`threads` is {threads}"):
            LocalEngine(threads)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)  # as on macOS and Windows
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert LocalEngine().threads == 6


def test_prepared_parts_have_sums_of_their_own():
    engine = LocalEngine(2)
    parts = engine.prepare(lambda part, factor: part * factor, [1.0, 2.0, 3.0], 10.0)
    assert parts.sum(lambda part: part) == 60
    assert list(parts.map(lambda part, own, more: (part, own, more), "x", each=[[7, 8, 9]]))[1] == (20.0, 8, "x")
    assert parts.prepare(lambda part: part + 1).sum(lambda part: part) == 63
    further, total = parts.map_and_sum(lambda part: (-part, (part, np.array([1.0, part]))))
    assert further.sum(lambda part: part) == -60
    assert total[0] == 60
    np.testing.assert_array_equal(total[1], [3, 60])
    np.testing.assert_array_equal(concatenate(parts.map(lambda part: np.full(2, part))), [10, 10, 20, 20, 30, 30])
    with pytest.raises(ValueError, match="zip"):
        list(parts.map(lambda part, own: own, each=[[1]]))


def test_seeds_do_not_depend_on_threads():
    drawn = []
    for threads in (1, 3):
        parts = LocalEngine(threads).hold(range(5))
        seeds = np.random.SeedSequence(4).spawn(5)
        drawn.append(list(parts.map(lambda part, seed: np.random.default_rng(seed).random(), each=[seeds])))
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 5


def test_an_engine_travels_without_its_threads():
    engine = LocalEngine(2)
    engine.sum(lambda part: part, [1, 2, 3])
    assert pickle.loads(pickle.dumps(engine)).threads == 2


def test_threads_are_not_for_answers_on_a_cluster():
    class Cluster(LocalEngine):
        remote = True

    there = rasch(50, 5, seed=0).responses.with_engine(Cluster(1))
    with pytest.raises(OptionError, match="these are on a cluster"):
        SpectralRasch(threads=2).fit(there)
