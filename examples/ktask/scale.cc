// A kernel task from C++: y = 2x for eight numbers. `ktask-scale FOLDER` writes it, then
//   fairlead ktask run FOLDER -d '{"inputs": {"x": [1, 2, 3, 4, 5, 6, 7, 8]}}'
#include <cstdio>

#include "fairlead/error.h"
#include "fairlead/ktask.h"

namespace {

constexpr const char* kPtx = R"(
.version 6.3
.target sm_70
.address_size 64
.visible .entry scale(.param .f32 a, .param .u64 x, .param .u64 y)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<4>;
  .reg .f32 %f<3>;
  ld.param.f32 %f1, [a];
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd1, %rd1, %rd3;
  add.u64 %rd2, %rd2, %rd3;
  ld.global.f32 %f2, [%rd1];
  mul.f32 %f2, %f2, %f1;
  st.global.f32 [%rd2], %f2;
  ret;
}
)";

}  // namespace

int main(int argc, char** argv) {
  using namespace fairlead::ktask;
  if (argc != 2) return std::fprintf(stderr, "usage: ktask-scale FOLDER\n"), 2;
  try {
    Task task;
    const Buffer x = task.input("x", Type::kF32, {8});
    const Buffer y = task.output("y", Type::kF32, {8});
    task.launch(task.module("scale.ptx", kPtx), "scale", {.grid = {1}, .block = {8}}, {2.0f, read(x), write(y)});
    task.save(argv[1]);
  } catch (const fairlead::Error& error) {
    return std::fprintf(stderr, "ktask-scale: %s\n", error.what()), 1;
  }
}
