// Opens a region whose functions are compiled for the instruction set this translation unit is built for. The
// ops/*.cc files are compiled once for every instruction set; SOFTGPU_ISA names the namespace that keeps them apart.
// Only what is written between isa_begin.h and isa_end.h may use the wider instructions: templates of the standard
// library are outside, so the linker can share their instances with the rest of the program.
// No include guard: included once per region.
#if defined(SOFTGPU_ISA_V3)
#define SOFTGPU_ISA v3
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx,avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,popcnt"))), \
                                 apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#endif
#elif defined(SOFTGPU_ISA_V4)
#define SOFTGPU_ISA v4
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("arch=x86-64-v4"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#endif
#else
#define SOFTGPU_ISA baseline
#endif
