"""Work is cut into blocks, on as many cores as this process may use."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from robustq import blocks
from robustq.exceptions import InputError


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.delenv(blocks.THREADS, raising=False)


@pytest.mark.parametrize("threads", [1, 2, None])
def test_every_row_is_worked_on_once(threads):
    done: list[int] = []
    lock = threading.Lock()

    def work(block):
        with lock:
            done.extend(range(block.start, block.stop))

    blocks.for_each_block(work, 10, 3, threads)
    assert sorted(done) == list(range(10))


def test_what_a_worker_raises_comes_through():
    def work(block):
        raise InputError(str(block.start))

    with pytest.raises(InputError, match="0"):
        blocks.for_each_block(work, 10, 5, 2)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinity")
def test_affinity_is_obeyed():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert blocks.count_cores() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert 1 <= blocks.count_cores() <= len(before)


def test_the_variable_says_how_many(monkeypatch):
    monkeypatch.setenv(blocks.THREADS, "7")
    assert blocks.count_cores() == 7
    monkeypatch.setenv(blocks.THREADS, "")
    assert blocks.count_cores() >= 1


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5", "²", "1 2", "9" * 5000])
def test_anything_else_is_refused(monkeypatch, given):
    monkeypatch.setenv(blocks.THREADS, given)
    with pytest.raises(InputError, match="ROBUSTQ_THREADS must be a whole number from 1"):
        blocks.count_cores()


def limit(folder, own, **files):
    """Return the limit that a made tree of control groups gives."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_max", ".max").replace("cfs", ".cfs")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (folder / "own").write_text(own)
    return blocks._limit_of_container.__wrapped__(folder, folder / "own")


ANY = 2**31


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/\n", {"cpu_max": "max 100000\n"}, ANY),
        ("0::/\n", {"cpu_max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu_max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu_max": "1000 100000\n"}, 1),
        # The narrowest of all groups above a process counts.
        ("0::/a/b\n", {"a__cpu_max": "300000 100000", "a__b__cpu_max": "max 100000"}, 3),
        ("0::/a/b\n", {"cpu_max": "100000 100000", "a__b__cpu_max": "300000 100000"}, 1),
        # Within a container the own path may not be there.
        ("0::/docker/123\n", {"cpu_max": "400000 100000"}, 4),
        ("0::/../../outside\n", {"cpu_max": "400000 100000"}, 4),
        ("", {}, ANY),
        ("nonsense", {"cpu_max": "nonsense"}, ANY),
        ("0::/\n", {"cpu_max": "100000 0"}, ANY),
    ],
)
def test_containers_of_version_2_are_obeyed(tmp_path, own, files, cores):
    assert limit(tmp_path, own, **files) == cores


@pytest.mark.parametrize("name", ["cpu", "cpu,cpuacct"])
def test_containers_of_version_1_are_obeyed(tmp_path, name):
    group = tmp_path / name / "docker"
    group.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text("250000\n")
    (group / "cpu.cfs_period_us").write_text("100000\n")
    (tmp_path / name / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / name / "cpu.cfs_period_us").write_text("100000\n")
    own = f"5:memory:/docker\n4:{name}:/docker\n"
    assert limit(tmp_path, own) == 3
    assert limit(tmp_path, "4:cpuset:/docker\n") == ANY


def test_the_first_error_in_the_order_of_the_rows_is_raised():
    second_failed = threading.Event()

    def work(block):
        if block.start == 0:
            assert second_failed.wait(10)
        else:
            second_failed.set()
        raise InputError(str(block.start))

    with pytest.raises(InputError, match="0"):
        blocks.for_each_block(work, 2, 1, 2)


@pytest.fixture
def interruptible():
    """A process that is interrupted as at a terminal: jobs in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_is_answered_while_blocks_run(threads):
    begun, end = [], threading.Event()

    def work(block):
        begun.append(block.start)
        if block.start == 0:
            signal.raise_signal(signal.SIGINT)
        end.wait(30)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        blocks.for_each_block(work, 10_000, 1000, threads)
    assert time.monotonic() - started < 5
    assert len(begun) <= threads
    end.set()
    time.sleep(0.1)
    assert len(begun) <= threads, "blocks were begun after the interrupt"


@pytest.mark.parametrize("threads", [1, 2])
def test_whoever_watches_is_told_of_blocks_but_not_of_those_within(threads):
    told = []

    def work(block):
        blocks.for_each_block(lambda _: None, 100, 10, 2)

    with blocks.watching(lambda done, total: told.append((done, total))):
        blocks.for_each_block(work, 300, 100, threads)
    blocks.for_each_block(work, 300, 100, threads)
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_threads_see_what_the_caller_has_set_for_itself():
    found = []
    with np.errstate(over="raise"):
        blocks.for_each_block(lambda _: found.append(np.geterr()["over"]), 200, 100, 2)
    assert found == ["raise", "raise"]
