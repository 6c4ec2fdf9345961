# NVIDIA H100 80GB HBM3. Public data sheet values; context_mib and launch_overhead_us are typical of the current driver.
name = NVIDIA H100 80GB HBM3
pci_device_id = 9008  # 0x2330
compute_capability = 9.0
sm_count = 132
cores_per_sm = 128
clock_mhz = 1980
memory_clock_mhz = 2619
memory_bus_bits = 5120
memory_mib = 81920
memory_bandwidth_gb_s = 3350
link_bandwidth_gb_s = 55
l2_kib = 51200
shared_per_sm_kib = 228
shared_per_block_kib = 227
power_idle_watts = 70
power_max_watts = 700
temperature_idle_celsius = 30
temperature_max_celsius = 82
context_mib = 500
launch_overhead_us = 3

# MIG. The placements of an instance are the memory slices it may begin at. Values as printed by the vendor's tool.
mig_memory_slices = 8
#                   id  compute  memory  SMs     MiB  copy  decoders  starts
mig_1g.10gb       = 19  1        1       16     9984  1     1         0 1 2 3 4 5 6
mig_1g.10gb+me    = 20  1        1       16     9984  1     1         0 1 2 3 4 5 6
mig_1g.20gb       = 15  1        2       26    20096  1     1         0 2 4 6
mig_2g.20gb       = 14  2        2       32    20096  2     2         0 2 4
mig_3g.40gb       =  9  3        4       60    40448  3     3         0 4
mig_4g.40gb       =  5  4        4       64    40448  4     4         0
mig_7g.80gb       =  0  7        8       132   81152  8     7         0
