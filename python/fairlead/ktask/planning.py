"""Which temporaries may share memory? Those that are never alive at once.

A temporary is alive from the first kernel that touches it to the last. Temporaries are taken in the order in which they
begin, and each gets the memory that has become free and fits best: the smallest that is large enough, else the largest,
which then grows. A chain of a hundred layers needs two.

    kernels   0   1   2   3        t0 and t2 share: t0 is last read by kernel 1, t2 is first written by kernel 2
    t0        w---r
    t1            w---r
    t2                w---r
"""


class Shared:
    """Memory that temporaries take turns in."""

    def __init__(self):
        self.bytes = 0
        self.members = []
        self.free_after = -1


def lifetimes(launches, iterations):
    """{buffer: (first, last)} of the temporaries, in the order in which they begin."""
    found = {}
    carried = set()
    for index, launch in enumerate(launches):
        for argument in launch.buffers():
            buffer = argument.buffer
            if buffer.role != "temporary":
                continue
            if buffer not in found and argument.reads():
                carried.add(buffer)  # its value is that of the iteration before, or one kernel reads and writes it
            first, _ = found.get(buffer, (index, index))
            found[buffer] = (first, index)
    if iterations > 1:
        found.update((buffer, (0, len(launches) - 1)) for buffer in carried)
    return found


def share_temporaries(launches, iterations=1, share=True):
    """[Shared]; every temporary is a member of one. Zeroed ones are alone: they are filled before the first kernel.
    share=False: each is alone, so that kernels which do not depend on each other may run at once."""
    pool = []
    for buffer, (first, last) in sorted(lifetimes(launches, iterations).items(), key=lambda item: item[1][0]):
        free = [] if buffer.zeroed or not share else [shared for shared in pool if shared.free_after < first]
        fitting = [shared for shared in free if shared.bytes >= buffer.bytes]
        if fitting:
            chosen = min(fitting, key=lambda shared: shared.bytes)
        elif free:
            chosen = max(free, key=lambda shared: shared.bytes)
        else:
            chosen = Shared()
            pool.append(chosen)
        chosen.members.append(buffer)
        chosen.bytes = max(chosen.bytes, buffer.bytes)
        chosen.free_after = len(launches) if buffer.zeroed else last
    return pool
