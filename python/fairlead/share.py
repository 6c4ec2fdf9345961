"""A share of a GPU, as Client.deploy takes it."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Share:
    """What each instance of a function gets of its GPU. request: per cent of the time that it is promised while it has work; limit: per
    cent that it gets at most; compute: per cent of the multiprocessors (below 100 under --sharing mps only); memory_mib: device memory;
    replicas: how many instances are kept started, a number or "MIN:MAX". None: as the function has it, or as the node has it.

    fairlead.Share(request=34, limit=50) is a third of a GPU, and up to half of one while others leave it."""

    request: int = 0
    limit: int = 100
    compute: int = 100
    memory_mib: int | None = None
    replicas: int | str | None = None

    def tags(self) -> dict[str, str]:
        tags = {"gpu:quota-request": self.request, "gpu:quota-limit": self.limit, "gpu:compute-percent": self.compute,
                "gpu:memory-mib": self.memory_mib, "gpu:replicas": self.replicas}
        return {tag: str(value) for tag, value in tags.items() if value is not None}
