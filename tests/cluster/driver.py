"""A driver in a process of its own, which dies at a sweep: arguments are JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import tiebreak as tb

if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.argv[1])

    def watch(progress: tb.shards.FitProgress) -> None:
        if progress.n_sweeps == given["dies_at"]:
            os.kill(os.getpid(), signal.SIGKILL)

    client = None
    if given["address"]:
        from distributed import Client

        client = Client(given["address"])
    tb.shards.fit(
        given["shards"],
        given["out"],
        client=client,
        links=given["links"] and tb.read_links(given["links"]),
        gold=given["gold"],
        progress=watch,
    )
