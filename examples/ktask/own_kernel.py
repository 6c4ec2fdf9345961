"""out[i] = factor * in[i] by a kernel of one's own."""

from array import array

from fairlead import ktask

SCALE = """
.version 6.3
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 out, .param .u64 in, .param .f32 factor, .param .u32 count)
{
  .reg .pred %outside;
  .reg .f32 %f<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<3>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r0, [count];
  setp.ge.u32 %outside, %r4, %r0;
  @%outside ret;
  mul.wide.u32 %rd0, %r4, 4;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  add.u64 %rd1, %rd1, %rd0;
  add.u64 %rd2, %rd2, %rd0;
  ld.global.f32 %f0, [%rd1];
  ld.param.f32 %f1, [factor];
  mul.f32 %f0, %f0, %f1;
  st.global.f32 [%rd2], %f0;
  ret;
}
"""

task = ktask.Task()
x = task.input("x", "f32", (1000,))
y = task.output("y", type="f32", shape=(1000,))
task.launch(task.module(SCALE), "scale", grid=4, block=256,
            arguments=[ktask.write(y), ktask.read(x), ktask.f32(2.5), ktask.u32(1000)])

result = task.run(x=array("f", range(1000)))["y"]
print(f"y[999] = {result[999]}, 2.5 x 999 = {2.5 * 999}")
assert result[999] == 2.5 * 999
