#!/usr/bin/env python3
"""Measures `pillion serve` beside a bare pipe and a sidecar that does nothing. Started by `cargo xtask bench`.

Python 3.11, standard library only. `wire.py` speaks JSON-RPC, `contenders.py` says what is measured,
`measure.py` takes one round, `report.py` holds the results against the targets.
"""
import argparse
import asyncio
import json
import pathlib
import signal
import sys
import time

import contenders
import report
from contenders import NULL, PILLION, Paths
from measure import round_of


async def measure(names, arguments):
    loop = asyncio.get_running_loop()
    # End what runs, leave nothing behind.
    loop.add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    # Requests to servers that hang on purpose are never answered.
    quiet = ("never retrieved", "was destroyed")
    loop.set_exception_handler(
        lambda loop, context: None
        if any(text in context["message"] for text in quiet)
        else loop.default_exception_handler(context)
    )
    results = {name: [] for name in names}
    for number in range(arguments.rounds):
        for name in names:
            begin = time.time()
            figures = await round_of(name, arguments.calls, arguments.idle)
            results[name].append(figures)
            problems = "; ".join(figures.get("problems", []))
            print(f"round {number + 1}, {name}: {time.time() - begin:.0f} s {problems}", file=sys.stderr, flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pillion", type=pathlib.Path, required=True, help="the release binary")
    parser.add_argument("--material", type=pathlib.Path, required=True, help="folder of fixture-server and null-sidecar")
    parser.add_argument("--rivals", type=pathlib.Path, help="folder with node_modules of other programs")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=1000, help="calls one after the other in a round")
    parser.add_argument("--idle", type=float, default=3, help="seconds of idleness to watch")
    parser.add_argument("--json", type=pathlib.Path, help="keep the raw figures here")
    parser.add_argument("--markdown", type=pathlib.Path, help="write the page here")
    parser.add_argument("--command", default="cargo xtask bench", help="what the page says how it was made")
    arguments = parser.parse_args()
    Paths.pillion, Paths.material = arguments.pillion, arguments.material
    names = [NULL, PILLION]
    if arguments.rivals:
        contenders.rivals(arguments.rivals)
        names = list(contenders.CONTENDERS)[1:]
    results = asyncio.run(measure(names, arguments))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    rows = report.judge(results, arguments.pillion.stat().st_size / 1e6)
    targets, side_by_side = report.targets_table(rows), report.contenders_table(results)
    print(f"{targets}\n\n{side_by_side}")
    problems = {f"{name}: {text}" for name in names for figures in results[name] for text in figures.get("problems", [])}
    for problem in sorted(problems):
        print(f"problem: {problem}")
    if arguments.markdown:
        page = report.PAGE.format(
            rounds=arguments.rounds, command=arguments.command, targets=targets, contenders=side_by_side
        )
        arguments.markdown.write_text(page)
    sys.exit(0 if all(holds for *_, holds in rows) and not problems else 1)


if __name__ == "__main__":
    main()
