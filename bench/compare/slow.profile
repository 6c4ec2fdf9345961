# A device so slow that kernels of the samples at their smallest sizes last tens of milliseconds by its clock, and one or two
# on the processor that executes them: what is measured is the model's time, not the load of the machine.
name = Slow modelled device
pci_device_id = 7601
compute_capability = 7.0
sm_count = 4
cores_per_sm = 64
clock_mhz = 1
memory_clock_mhz = 877
memory_bus_bits = 4096
memory_mib = 512
memory_bandwidth_gb_s = 1
link_bandwidth_gb_s = 4
l2_kib = 6144
shared_per_sm_kib = 96
shared_per_block_kib = 96
power_idle_watts = 40
power_max_watts = 300
temperature_idle_celsius = 32
temperature_max_celsius = 78
context_mib = 0
launch_overhead_us = 500
