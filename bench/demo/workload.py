"""The demo's workload: 24 functions (3 copies of the eight of the MQFQ-Sticky paper's Table 1), exponential inter-arrival
times, rates Zipf(1.5) over a seeded permutation. The same seed gives the same list of arrivals, to the last digit."""

import random
from dataclasses import dataclass

# Table 1 of the paper: GPU seconds of a warm and of a cold invocation on a V100.
TABLE_1 = {
    "imagenet": (2.253, 11.286),
    "roberta": (0.268, 15.481),
    "ffmpeg": (4.483, 4.612),
    "fft": (0.897, 3.322),
    "isoneural": (0.026, 9.963),
    "lud": (2.050, 2.359),
    "needle": (1.979, 2.177),
    "pathfinder": (1.472, 1.797),
}
COPIES = 3
ZIPF_EXPONENT = 1.5


@dataclass(frozen=True)
class Arrival:
    at: float  # seconds from the start
    function: str


def function_names():
    return [f"{program}-{copy}" for copy in range(1, COPIES + 1) for program in TABLE_1]


def program_of(function):
    return function.rsplit("-", 1)[0]


def init_pause_ms(function, scale):
    """Stands for loading libraries: Table 1's cold minus warm time, scaled down."""
    warm, cold = TABLE_1[program_of(function)]
    return round(1000 * (cold - warm) / scale)


def zipf_rates(seed, load, service_seconds):
    """Arrivals per second of each function, such that they offer `load` seconds of warm service per second in all.

    service_seconds: measured warm service time of each program.
    """
    names = function_names()
    random.Random(seed).shuffle(names)
    shares = {name: 1 / rank**ZIPF_EXPONENT for rank, name in enumerate(names, start=1)}
    offered = sum(share * service_seconds[program_of(name)] for name, share in shares.items())
    return {name: share * load / offered for name, share in shares.items()}


def arrivals(seed, rates, duration):
    generator = random.Random(seed + 1)
    merged = []
    for name in sorted(rates):
        at = generator.expovariate(rates[name])
        while at < duration:
            merged.append(Arrival(at, name))
            at += generator.expovariate(rates[name])
    return sorted(merged, key=lambda arrival: (arrival.at, arrival.function))
