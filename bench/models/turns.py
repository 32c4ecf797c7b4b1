# SPDX-License-Identifier: Apache-2.0
"""Functions that do the same in several runtimes, timed in turns."""
import time

TURN_MS = 100  # about as long each turn lasts; one call at least
REST_MS = 10  # before a turn: threads of the one before look for work for a while, and take cores meanwhile


def timed(run, calls):
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) * 1000 / calls


def calls_for(run, most):
    """How many calls make a turn. The first two are slow, and say how many more it takes to know."""
    calls = 2
    for part in (TURN_MS / 4, TURN_MS):
        calls = max(1, min(most, int(part / max(timed(run, calls), 1e-3))))
    return calls


def in_turns(runs, rounds, most):
    """Milliseconds of each turn by name, of `most` calls at most."""
    times, calls = {name: [] for name in runs}, {name: calls_for(run, most) for name, run in runs.items()}
    for _ in range(rounds):
        for name, run in runs.items():
            time.sleep(REST_MS / 1000)
            times[name].append(timed(run, calls[name]))
    return times


def shown(milliseconds):
    return f"{milliseconds * 1000:,.1f} us" if milliseconds < 1 else f"{milliseconds:,.1f} ms"
