// Closes the region that isa_begin.h opened. No include guard: included once per region.
#if defined(SOFTGPU_ISA_V3) || defined(SOFTGPU_ISA_V4)
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
#undef SOFTGPU_ISA
