"""From the figures of all rounds to what is promised, and to tables."""
import statistics

from contenders import NULL, PILLION


def medians(rounds):
    """The median of every figure; texts and truths must agree in all rounds, else they are joined."""
    result = {}
    for key in sorted({key for figures in rounds for key in figures if key != "problems"}):
        values = [figures[key] for figures in rounds if key in figures]
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            result[key] = statistics.median(values)
        else:
            result[key] = values[0] if len(set(values)) == 1 else ", ".join(map(str, values))
    return result


def ratio(rounds, over, under):
    """The median of the ratios of each round, both sides taken at about the same moment."""
    values = [figures[over] / figures[under] for figures in rounds if figures.get(over) and figures.get(under)]
    return statistics.median(values) if values else None


def judge(results, binary_mb):
    """Rows of (what is promised, measured, target, whether it holds)."""
    rounds = results[PILLION]
    pillion, null = medians(rounds), medians(results[NULL])
    rows = []

    def most(what, value, target, unit=""):
        holds = value is not None and value <= target
        rows.append((what, "–" if value is None else f"{value:.2f}{unit}", f"≤ {target}{unit}", holds))

    def least(what, value, target, unit=""):
        holds = value is not None and value >= target
        rows.append((what, "–" if value is None else f"{value:.2f}{unit}", f"≥ {target}{unit}", holds))

    def exactly(what, value, target):
        rows.append((what, "–" if value is None else str(value), str(target), value == target))

    def of(over, under):
        return over / under if over and under else None

    most("small call, median / null-sidecar", of(pillion.get("call_us"), null.get("call_us")), 1.6, " ×")
    most("processor time per call, 64 in flight", pillion.get("cpu_us"), 25, " µs")
    least("calls per second, 64 in flight / bare pipe", ratio(rounds, "calls_per_second", "floor_calls_per_second"), 0.4, " ×")
    most("10 MiB result / bare pipe", ratio(rounds, "big10_ms", "floor_big10_ms"), 2.5, " ×")
    exactly("10 MiB result byte for byte as sent", pillion.get("big10_as_sent"), True)
    grown = [f["memory_after"] - f["memory_before"] for f in rounds if "memory_after" in f]
    most("memory kept after 10 MiB results", statistics.median(grown) if grown else None, 10, " MiB")
    exactly("a result over the limit fails its call with", pillion.get("over_limit"), "too_large")
    exactly("and spares the calls beside and after it", pillion.get("over_limit_spares_others"), True)
    most("40 instant servers listed / bare pipe", ratio(rounds, "forty", "floor_forty"), 1.5, " ×")
    most("40 servers of 500 ms / one of them", ratio(rounds, "slow_forty", "slow_one"), 1.3, " ×")
    most("38 beside a hanging and a crashing one / 38", ratio(rounds, "faulty_38", "faultless_38"), 1.2, " ×")
    exactly("states in a list that waits for no one", pillion.get("at_once_states"), 40)
    most("that list", pillion.get("at_once_ms"), 100, " ms")
    most("resident, empty", pillion.get("memory_empty"), 10, " MiB")
    most("resident, 40 servers", pillion.get("memory_forty"), 15, " MiB")
    most("wake-ups per second, idle with 40 servers", pillion.get("wakeups"), 0, "")
    most("spawn to first answer", pillion.get("first_answer_ms"), 20, " ms")
    most("binary", binary_mb, 20, " MB")
    return rows


def targets_table(rows):
    lines = ["| promised | measured | target | |", "| --- | --- | --- | --- |"]
    lines += [f"| {what} | {value} | {target} | {'pass' if holds else 'FAIL'} |" for what, value, target, holds in rows]
    return "\n".join(lines)


def contenders_table(results):
    lines = [
        "| contender | small call / bare pipe | processor µs per call | calls/s / bare pipe | 1 MiB / bare pipe "
        "| 10 MiB / bare pipe | 40 servers / bare pipe | MiB empty, with 40 | wake-ups/s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, rounds in results.items():
        middle = medians(rounds)

        def times(over):
            value = ratio(rounds, over, "floor_" + over)
            return "–" if value is None else f"{value:.2f} ×"

        def number(key):
            return f"{middle[key]:.1f}" if key in middle else "–"

        lines.append(
            f"| {name} | {times('call_us')} | {number('cpu_us')} | {times('calls_per_second')} | {times('big1_ms')} "
            f"| {times('big10_ms')} | {times('forty')} | {number('memory_empty')}, {number('memory_forty')} "
            f"| {number('wakeups')} |"
        )
    return "\n".join(lines)


PAGE = """# Speed and memory

Measured by this command, which builds everything, runs {rounds} rounds and writes this page:

    {command}

The harness is `tests/bench`.
It compares three things in one run: a *bare pipe* (the harness speaks to the servers itself), the *null-sidecar* (a program that forwards frames and does nothing else), and `pillion serve` as it is handed out (`cargo build --profile dist`).
Each server has 20 tools and answers in microseconds, so what is measured is what stands between.
Contenders take turns in every round, and ratios are medians over rounds; absolute times say more about the machine than about the program and are not promised.
A small call is an echo of 25 bytes, one after the other.
Its ratio to the bare pipe depends on whether the machine's cores are awake, so the promise is held against the null-sidecar.

## What is promised

{targets}

## Side by side

{contenders}
"""
