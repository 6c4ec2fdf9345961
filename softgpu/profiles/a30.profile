# NVIDIA A30. Public data sheet values; context_mib and launch_overhead_us are typical of the current driver.
name = NVIDIA A30
pci_device_id = 8375  # 0x20B7
compute_capability = 8.0
sm_count = 56
cores_per_sm = 64
clock_mhz = 1440
memory_clock_mhz = 1215
memory_bus_bits = 3072
memory_mib = 24576
memory_bandwidth_gb_s = 933
link_bandwidth_gb_s = 25
l2_kib = 24576
shared_per_sm_kib = 164
shared_per_block_kib = 163
power_idle_watts = 28
power_max_watts = 165
temperature_idle_celsius = 30
temperature_max_celsius = 78
context_mib = 400
launch_overhead_us = 4

# MIG. The placements of an instance are the memory slices it may begin at. Values as printed by the vendor's tool.
mig_memory_slices = 4
#                   id  compute  memory  SMs     MiB  copy  decoders  starts
mig_1g.6gb        = 14  1        1       14     5952  1     1         0 1 2 3
mig_1g.6gb+me     = 21  1        1       14     5952  1     1         0 1 2 3
mig_2g.12gb       =  5  2        2       28    11968  2     2         0 2
mig_2g.12gb+me    =  6  2        2       28    11968  2     2         0 2
mig_4g.24gb       =  0  4        4       56    24000  4     4         0
