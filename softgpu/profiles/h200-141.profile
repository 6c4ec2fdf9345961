# NVIDIA H200. Public data sheet values; context_mib and launch_overhead_us are typical of the current driver.
name = NVIDIA H200
pci_device_id = 9013  # 0x2335
compute_capability = 9.0
sm_count = 132
cores_per_sm = 128
clock_mhz = 1980
memory_clock_mhz = 3201
memory_bus_bits = 6144
memory_mib = 143771
memory_bandwidth_gb_s = 4800
link_bandwidth_gb_s = 55
l2_kib = 51200
shared_per_sm_kib = 228
shared_per_block_kib = 227
power_idle_watts = 75
power_max_watts = 700
temperature_idle_celsius = 30
temperature_max_celsius = 82
context_mib = 500
launch_overhead_us = 3

# MIG. The placements of an instance are the memory slices it may begin at. Slices of
# 16, 32.5 and 65 GiB; the SMs of 2g.35gb and 3g.71gb as reported, all others and the placements inferred from the
# H100's; 7g is the memory in whole GiB.
mig_memory_slices = 8
#                   id  compute  memory  SMs     MiB  copy  decoders  starts
mig_1g.18gb       = 19  1        1       16    16384  1     1         0 1 2 3 4 5 6
mig_1g.18gb+me    = 20  1        1       16    16384  1     1         0 1 2 3 4 5 6
mig_1g.35gb       = 15  1        2       26    33280  1     1         0 2 4 6
mig_2g.35gb       = 14  2        2       32    33280  2     2         0 2 4
mig_3g.71gb       =  9  3        4       60    66560  3     3         0 4
mig_4g.71gb       =  5  4        4       64    66560  4     4         0
mig_7g.141gb      =  0  7        8       132  143360  8     7         0
