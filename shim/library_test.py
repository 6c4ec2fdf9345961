#!/usr/bin/env python3
"""libfairlead-shim.so as a file: what it needs, what it runs when it is loaded, what it exports; and that every symbol of
the driver has a decision. Arguments: the library, hooks.tsv, the software driver's symbols.tsv."""
import pathlib
import re
import subprocess
import sys
import unittest

LIBRARY, HOOKS, SYMBOLS = sys.argv[1:4]
DECISIONS = ("hook", "count", "pass")
OF_NVML = {"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"}
DRIVERS = ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1")
# What a driver may have besides, and nobody should meet without a decision.
MATTERS = re.compile(r"Alloc|Launch|Memcpy|Memset|MemCreate|MemMap|MemGet|Prefetch|ArrayCreate|TotalMem|PointerGet")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def rows(path):
    return [line.split("\t") for line in pathlib.Path(path).read_text().splitlines()[1:]]


def exports(library):
    names = re.findall(r" [TWi] (\S+)", output("nm", "-D", "--defined-only", library))
    return [re.sub("@@?", "@", name) for name in names]


class Library(unittest.TestCase):
    def test_needs_libc_and_nothing_else(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", LIBRARY))
        self.assertEqual(needed, ["libc.so.6"])

    def test_runs_nothing_of_its_own_when_it_is_loaded(self):
        # One entry is the compiler's frame_dummy.
        size = re.search(r"INIT_ARRAYSZ\)\s+(\d+)", output("readelf", "-dW", LIBRARY))
        self.assertEqual(size[1], "8")

    def test_its_thread_words_are_where_the_loader_puts_them(self):
        self.assertIn("STATIC_TLS", output("readelf", "-dW", LIBRARY))
        self.assertNotIn("__tls_get_addr", output("nm", "-D", LIBRARY))

    def test_exports_its_hooks_and_nothing_else(self):
        wanted = {symbol for _, symbol, decision, _ in rows(HOOKS) if decision != "pass"} | OF_NVML
        wanted |= {"dlsym@GLIBC_2.2.5", "dlsym@GLIBC_2.34"}
        self.assertEqual(sorted(exports(LIBRARY)), sorted(wanted))

    def test_never_ends_its_host(self):
        undefined = set(re.findall(r" U (\w+)", output("nm", "-D", LIBRARY)))
        self.assertEqual(undefined & {"exit", "_exit", "abort", "__assert_fail", "raise", "kill", "quick_exit"}, set())


class Decisions(unittest.TestCase):
    def test_each_is_one_of_three_and_those_that_pass_have_a_reason(self):
        for name, symbol, decision, reason in rows(HOOKS):
            self.assertIn(decision, DECISIONS, symbol)
            self.assertTrue(symbol.startswith(name), symbol)
            self.assertEqual(decision == "hook", reason == "", symbol)

    def test_every_symbol_of_the_software_driver_has_one(self):
        known = [(name, symbol) for name, symbol, *_ in rows(HOOKS)]
        self.assertEqual(known, [(name, symbol) for name, _, _, symbol in rows(SYMBOLS)])

    def test_every_symbol_of_this_machines_driver_that_matters_has_one(self):
        driver = next((path for path in DRIVERS if pathlib.Path(path).exists()), None)
        if driver is None:
            self.skipTest("no driver of NVIDIA's here")
        known = {symbol for _, symbol, *_ in rows(HOOKS)}
        found = {name.split("@")[0] for name in exports(driver)}
        self.assertEqual({name for name in found - known if name.startswith("cu") and MATTERS.search(name)}, set())

    def test_nothing_that_allocates_or_launches_passes(self):
        work = re.compile(r"cu(Launch|GraphLaunch|MemAlloc(?!Host)|Memcpy|Memset|MemCreate$|Array.*Create|Mipmapped.*Create)")
        passing = [symbol for _, symbol, decision, _ in rows(HOOKS) if decision == "pass" and work.match(symbol)]
        self.assertEqual([symbol for symbol in passing if symbol not in ("cuMemAllocHost_v2",)], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=0)
