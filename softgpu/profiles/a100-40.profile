# NVIDIA A100-SXM4-40GB. Public data sheet values; context_mib and launch_overhead_us are typical of the current driver.
name = NVIDIA A100-SXM4-40GB
pci_device_id = 8368  # 0x20B0
compute_capability = 8.0
sm_count = 108
cores_per_sm = 64
clock_mhz = 1410
memory_clock_mhz = 1215
memory_bus_bits = 5120
memory_mib = 40960
memory_bandwidth_gb_s = 1555
link_bandwidth_gb_s = 25
l2_kib = 40960
shared_per_sm_kib = 164
shared_per_block_kib = 163
power_idle_watts = 50
power_max_watts = 400
temperature_idle_celsius = 32
temperature_max_celsius = 80
context_mib = 400
launch_overhead_us = 4

# MIG. The placements of an instance are the memory slices it may begin at. Values as printed by the vendor's tool.
mig_memory_slices = 8
#                   id  compute  memory  SMs     MiB  copy  decoders  starts
mig_1g.5gb        = 19  1        1       14     4864  1     0         0 1 2 3 4 5 6
mig_1g.5gb+me     = 20  1        1       14     4864  1     1         0 1 2 3 4 5 6
mig_1g.10gb       = 15  1        2       14     9856  1     1         0 2 4 6
mig_2g.10gb       = 14  2        2       28     9856  2     1         0 2 4
mig_3g.20gb       =  9  3        4       42    19968  3     2         0 4
mig_4g.20gb       =  5  4        4       56    19968  4     2         0
mig_7g.40gb       =  0  7        8       98    40192  7     5         0
