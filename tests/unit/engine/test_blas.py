"""Matrix libraries have one thread inside an engine and a small fit, and get theirs back afterwards."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from threadpoolctl import ThreadpoolController

from spectral_irt import SpectralRasch, simulate
from spectral_irt.engine import LocalEngine, one_blas_thread
from spectral_irt.estimators import base

CONTROLLER = ThreadpoolController().select(user_api="blas")


def threads(*_):
    return {library["num_threads"] for library in CONTROLLER.info()}


@pytest.fixture(autouse=True)
def _three_threads():
    with CONTROLLER.limit(limits=3):
        if threads() != {3}:
            pytest.skip("this matrix library cannot be given three threads")
        yield
        assert threads() == {3}


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("parts", [1, 5])
def test_kernels_have_one(n_threads, parts):
    assert list(LocalEngine(n_threads).map(threads, range(parts))) == [{1}] * parts
    assert threads() == {3}


@pytest.mark.parametrize("first_out", ["outer", "inner"])
def test_with_two_threads_inside_they_are_given_back_whoever_leaves_first(first_out):
    entered, leave = Event(), Event()

    def beside():
        with one_blas_thread():
            entered.set()
            assert leave.wait(60)

    with ThreadPoolExecutor(1) as pool:
        with one_blas_thread():
            other = pool.submit(beside)
            assert entered.wait(60)
            assert threads() == {1}
            if first_out == "inner":
                leave.set()
                other.result()
                assert threads() == {1}
        leave.set()
        other.result()
    assert threads() == {3}
    with one_blas_thread():
        assert threads() == {1}


def test_a_map_that_is_not_taken_to_its_end_gives_them_back():
    results = LocalEngine(2).map(threads, range(5))
    assert next(results) == {1}
    del results
    assert threads() == {3}


@pytest.mark.parametrize(("small", "expected"), [(1_000, {1}), (5, {3})])
def test_a_small_fit_has_one_throughout(small, expected, monkeypatch):
    monkeypatch.setattr(base, "SMALL_ALGEBRA", small)
    heard = []
    data = simulate.rasch(200, 10, seed=1).responses
    SpectralRasch().fit(data, progress=lambda text: heard.append(threads()))
    assert heard
    assert all(one == expected for one in heard)


@pytest.mark.slow
def test_the_package_is_imported_without_the_library_that_does_it():
    code = "import sys; from spectral_irt import *; assert 'threadpoolctl' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
