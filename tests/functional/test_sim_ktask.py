"""The kernel task laboratory on the command line: systems side by side, without a node."""

import json
import subprocess

from conftest import BUILD

SHORT = ("--set", "warm_up_s=5", "--set", "duration_s=10")


def sim_ktask(*words, status=0):
    done = subprocess.run([BUILD / "bin/fairlead", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr
    return done


def runs(*words):
    return json.loads(sim_ktask("--json", "sim", "ktask", *words, *SHORT).stdout)


def test_kernel_tasks_do_not_fall_off_the_cliff_of_processes():
    by_system = {run["system"]: run for run in runs("jacobi", "--replicas", "8")}
    assert by_system["etask"]["cold_starts"] == by_system["etask"]["sent"]
    assert by_system["kaas"]["throughput_per_s"] > 5 * by_system["etask"]["throughput_per_s"]
    assert by_system["fairlead"]["throughput_per_s"] > 1.5 * by_system["kaas"]["throughput_per_s"]


def test_the_same_seed_gives_the_same_run():
    words = ("cgemm", "--replicas", "32", "--seeds", "2", "--online", "0.8")
    assert runs(*words) == runs(*words)


def test_a_sweep_has_a_line_for_each_value():
    values = [(run["value"], run["throughput_per_s"]) for run in
              runs("cgemm", "--system", "fairlead", "--replicas", "32", "--sweep", "lanes=1,4")]
    assert [value for value, _ in values] == ["1", "4"]
    assert values[1][1] > values[0][1]


def test_a_wrong_setting_is_named_with_its_bounds():
    error = sim_ktask("sim", "ktask", "cgemm", "--set", "lanes=0", status=2).stderr
    assert 'lanes is "0", it must be auto or a number from 1 to 64' in error
    error = sim_ktask("sim", "ktask", "vgg", status=2).stderr
    assert 'workload "vgg" is unknown; known are micro, resnet50, bert, cgemm, jacobi' in error
