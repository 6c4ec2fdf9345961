// Reading modules as a node does when somebody deploys them. Budget: 10 ms for 1 MB of PTX.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "base/check.h"
#include "gpu/kernel_image.h"

namespace fairlead {
namespace {

// Kernels of 100 instructions each, as compilers write them.
std::string ptx_of(std::size_t bytes) {
  std::string text = ".version 7.5\n.target sm_80\n.address_size 64\n.shared .align 4 .b8 tile[4096];\n";
  for (int i = 0; text.size() < bytes; ++i) {
    text += fmt::format(
        "\n\t// .globl\tkernel_{0}\n.visible .entry kernel_{0}(\n\t.param .u64 kernel_{0}_param_0,\n"
        "\t.param .u32 kernel_{0}_param_1\n)\n.maxntid 256, 1, 1\n{{\n\t.reg .pred \t%p<7>;\n\t.reg .b64 \t%rd<90>;\n",
        i);
    for (int line = 0; line < 25; ++line) {
      text += fmt::format(
          "\tld.param.u64 \t%rd{0}, [kernel_{1}_param_0];\n\tmad.lo.s32 \t%r{0}, %r1, %r2, %r3;\n"
          "\tsetp.ge.s32 \t%p1, %r{0}, %r2;\n\t@%p1 bra \t$L__BB{1}_{0};\n$L__BB{1}_{0}:\n\tmov.u32 \t%r9, tile;\n",
          line, i);
    }
    text += "\tret;\n\n}\n";
  }
  return text;
}

void read_ptx_text(benchmark::State& state) {
  const std::string text = ptx_of(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    const auto image = read_kernel_image(text);
    FL_CHECK(image.has_value() && image->kernels.front().static_shared_bytes == 4096);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(read_ptx_text)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fairlead
