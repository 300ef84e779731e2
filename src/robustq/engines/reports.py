"""What workers counted, told once where the work was asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from robustq.scoring import Tally

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Report"]


class Report:
    """Collects the tallies of partitions, and warns once when all of them are there.

    A partition that is scored twice, because a worker died, counts once. When all are scored
    again, they are told again.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, Tally] = {}
        self._lock = threading.Lock()

    def note(self, partition: Hashable, tally: Tally, partitions: int) -> None:
        """Count a partition, of so many."""
        with self._lock:
            self._seen[partition] = tally
            if len(self._seen) < partitions:
                return
            seen, self._seen = self._seen, {}
        total = Tally()
        for one in seen.values():
            total.add(one)
        # In a thread of its own: where warnings are errors, this one must not end the engine's.
        thread = threading.Thread(target=total.warn, name="robustq-report")
        thread.start()
        thread.join()
