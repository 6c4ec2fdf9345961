"""Numbers of single parts, from their own benchmark programs, each beside its baseline in the same run."""

from bench.measure import BUILD, google_benchmark, report, run_json


def policy():
    times = google_benchmark("queueing_bench", "^decision/")
    for name in dict.fromkeys(benchmark.split("/")[1] for benchmark in times):
        if f"decision/{name}/10000" not in times:  # chooses the GPU too: for tens of functions
            report(f"decision_{name}_32_flows", times[f"decision/{name}/32"] / 1000, "us")
            report(f"decision_{name}_1000_flows", times[f"decision/{name}/1000"] / 1000, "us")
            continue
        small, large = times[f"decision/{name}/10000"], times[f"decision/{name}/100000"]
        report(f"decision_{name}_10000_flows", small / 1000, "us", bound=0.5,
               note="one choice, its completion and an arrival, all flows backlogged")
        report(f"decision_{name}_100000_flows", large / 1000, "us", bound=1.0)


def simulator():
    """Rates are of processor time on one core. Memory: of a process that ran nothing else."""
    def rows(pattern):
        result = run_json(BUILD / "bin" / "sim_bench", f"--benchmark_filter={pattern}", "--benchmark_format=json")
        return {row["name"]: row for row in result["benchmarks"]}

    for name, row in rows("^functions_").items():
        report("simulated_" + name.removeprefix("functions_").replace("/", "_"), row["per_second"], "1/s",
               bound=300_000 if name.startswith("functions_10000/") else 1_000_000, at_least=True,
               note=f"functions, settings, pool; {row['invocations']:,.0f} invocations")
    short, long = (rows(f"^trace_length/{times}$")[f"trace_length/{times}"]["peak_mib"] for times in (1, 8))
    report("simulated_trace_memory", long, "MiB", baseline=short, bound=1.1, note="peak of a trace 8 times as long")


def sandbox():
    times = google_benchmark("runtime_bench", "BM_SandboxStartToExec|BM_SandboxStartToExit/pause_ms:100/cgroups:1|BM_CrunRun")
    milliseconds = {name.split("/")[0]: value / 1e6 for name, value in times.items()}
    crun = milliseconds.get("BM_CrunRun")  # absent where crun is not installed
    report("sandbox_start", milliseconds["BM_SandboxStartToExec"], "ms", baseline=crun, bound=0.25,
           note="order to first instruction of a static binary; baseline: crun run of it, start to end")
    report("sandbox_start_to_end", milliseconds["BM_SandboxStartToExit"], "ms", baseline=crun)


def ptx_machine():
    times = google_benchmark("softgpu_ptx_bench", "BM_")
    seconds = {name.removesuffix("/real_time"): value / 1e9 for name, value in times.items()}
    report("sgemm_1024_16x16_tile", seconds["BM_SgemmSharedTile/1024"], "s", bound=1.0,
           note=f"one core; plain C++ loop: {seconds['BM_SgemmHost/1024']:.2f} s")
    report("sgemm_1024_64x64_register_tile", seconds["BM_SgemmRegisterTile/1024"], "s", bound=0.35, note="one core")
    report("jacobi_512_3000_launches", seconds["BM_Jacobi3000/512"], "s", bound=0.8,
           note=f"one core; plain C++ loop: {seconds['BM_Jacobi3000Host/512']:.2f} s")
    report("softmax_64x1000", 1e3 * seconds["BM_Softmax"], "ms", bound=1.0)
    report("sgemm_512_on_two_cores", seconds["BM_Workers/1"], "s", baseline=seconds["BM_Workers/2"], bound=1.8,
           at_least=True, note="one host thread beside two")
    report("module_load_2000_instructions", 1e3 * seconds["BM_Load"], "ms", bound=3.0)


def software_driver():
    times = google_benchmark("softgpu_driver_bench", "^(launch|ipc_open)")
    report("empty_launch", times["launch_burst/real_time"] / 1e6, "us", bound=2.0,
           note="through the driver: each of 1,000 in a row, until all have run")
    report("empty_launch_and_wait", times["launch_and_synchronise/real_time"] / 1e3, "us")
    report("ipc_open", times["ipc_open"] / 1e3, "us", bound=50)
    lock = google_benchmark("softgpu_device_bench", "^lock_uncontended")
    report("device_lock", lock["lock_uncontended"], "ns", bound=200)
