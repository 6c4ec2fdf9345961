"""Numbers of single parts, from their own benchmark programs, each beside its baseline in the same run."""

from bench.measure import google_benchmark, report


def policy():
    times = google_benchmark("queueing_bench", "^decision/")
    for name, label in (("mqfq_sticky", "mqfq-sticky"), ("fcfs", "fcfs")):
        small, large = times[f"decision/{name}/10000"], times[f"decision/{name}/100000"]
        report(f"decision_{label}_10000_flows", small / 1000, "us", bound=0.5,
               note="one choice, its completion and an arrival, all flows backlogged")
        report(f"decision_{label}_100000_flows", large / 1000, "us", baseline=small / 1000)


def sandbox():
    times = google_benchmark("runtime_bench", "BM_SandboxStartToExec|BM_SandboxStartToExit/pause_ms:100/cgroups:1|BM_CrunRun")
    milliseconds = {name.split("/")[0]: value / 1e6 for name, value in times.items()}
    crun = milliseconds.get("BM_CrunRun")  # absent where crun is not installed
    report("sandbox_start", milliseconds["BM_SandboxStartToExec"], "ms", baseline=crun, bound=0.25,
           note="order to first instruction of a static binary; baseline: crun run of it, start to end")
    report("sandbox_start_to_end", milliseconds["BM_SandboxStartToExit"], "ms", baseline=crun)


def softgpu():
    times = google_benchmark("softgpu_ptx_bench", "BM_")
    seconds = {name.split("/")[0]: value / 1e9 for name, value in times.items()}
    report("sgemm_1024_16x16_tile", seconds["BM_SgemmSharedTile"], "s", bound=1.5,
           note=f"one core; plain C++ loop: {seconds['BM_SgemmHost']:.2f} s")
    report("sgemm_1024_64x64_register_tile", seconds["BM_SgemmRegisterTile"], "s")
    report("jacobi_512_3000_launches", seconds["BM_Jacobi3000"], "s", bound=1.2,
           note=f"one core; plain C++ loop: {seconds['BM_Jacobi3000Host']:.2f} s")
    report("empty_launch", 1e6 * seconds["BM_EmptyLaunch"], "us")
