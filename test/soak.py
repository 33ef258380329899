"""Looks for a graph that breaks something, for as long as you like: `make soak MINUTES=10`.

Every case is a batch of odd graphs, drawn by hypothesis, for which one property is checked. Ends with 1 if one failed.
"""

import argparse
import sys
import time
import traceback
from pathlib import Path

import torch
from hypothesis import HealthCheck, given, seed, settings
from properties import PROPERTIES, batches
from tqdm import tqdm

ROUND = 200  # cases of a property before the next one has its turn


def main():
    parser = argparse.ArgumentParser(prog=f"python {Path(__file__).name}", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first round; each has another one (default: %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    end, number = time.monotonic() + 60 * args.minutes, args.seed
    cases, failures = dict.fromkeys(PROPERTIES, 0), []
    quiet = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
    names = list(PROPERTIES)
    with tqdm(unit="case", smoothing=0) as progress:

        def check(graphs):
            cases[name] += 1
            progress.update()
            PROPERTIES[name](graphs)

        while time.monotonic() < end:
            name = names[number % len(names)]
            try:
                settings(max_examples=ROUND, **quiet)(seed(number)(given(batches())(check)))()
            except Exception as error:
                failures.append(name)
                progress.write(f"{name}, --seed {number}: {''.join(traceback.format_exception(error))}")
            number += 1
    for name, count in cases.items():
        print(f"{name}: {count} cases, {failures.count(name)} failed rounds")
    print(f"{sum(cases.values())} cases, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
