#include "gpu/kernel_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lz4.h>
#include <zstd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gpu/kernel_image_testing.h"

namespace fairlead {
namespace {

using namespace std::string_literals;
using testing::CubinBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}
std::filesystem::path testdata(const std::string& name) {
  return std::filesystem::path(KERNEL_IMAGE_TESTDATA) / name;
}

KernelImage read(const std::string& image) {
  auto read = read_kernel_image(image);
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(KernelImage{});
}
std::string refusal(const std::string& image) {
  const auto read = read_kernel_image(image);
  if (read) return "it was accepted";
  EXPECT_EQ(read.error().code, Errc::kInvalidArgument);
  return read.error().message;
}
std::string ptx(const std::string& text) {
  return ".version 8.3\n.target sm_80\n.address_size 64\n" + text;
}
KernelSignature kernel_of(const std::string& text) {
  const KernelImage image = read(ptx(text));
  return image.kernels.empty() ? KernelSignature{} : image.kernels.front();
}

const std::vector<KernelSignature> kKernels = {
    {.name = "calls", .parameters = {{0, 8}}, .required_threads = {32, 4, 1}, .static_shared_bytes = 4096},
    {.name = "nothing"},
    {.name = "saxpy", .parameters = {{0, 4}, {4, 4}, {8, 8}, {16, 8}}},
    {.name = "tiled",
     .parameters = {{0, 24}, {24, 1}, {32, 16}},
     .max_threads = 512,
     .static_shared_bytes = 4096 + 112}};

// ---- PTX

TEST(Ptx, ParametersLimitsAndSharedMemoryOfEachKernel) {
  const KernelImage image = read(file(testdata("kernels.ptx")));
  EXPECT_EQ(image.format, ImageFormat::kPtx);
  EXPECT_EQ(image.kernels, kKernels);
  EXPECT_THAT(image.targets, ElementsAre(80U));
}

TEST(Ptx, ParametersLieAsTheirTypesAre) {
  const KernelSignature kernel = kernel_of(
      ".entry k(.param.u8 a,.param .b16 b, .param .f64 c, .param .v2 .f32 d, .param .align 4 .b8 e[3][5],\n"
      ".param .u64 .ptr .shared .align 16 f, .param .f16x2 g, .param .texref h) { ret; }");
  EXPECT_THAT(kernel.parameters, ElementsAre(KernelParameter{0, 1}, KernelParameter{2, 2}, KernelParameter{8, 8},
                                             KernelParameter{16, 8}, KernelParameter{24, 15}, KernelParameter{40, 8},
                                             KernelParameter{48, 4}, KernelParameter{56, 8}));
}

TEST(Ptx, NumbersInEveryBase) {
  EXPECT_EQ(kernel_of(".entry k() { .shared .b8 a[0x10], b[010], c[0b11], d[7U]; }").static_shared_bytes,
            48U);  // 16 + 8 + 3 + 7, in multiples of 16
}

TEST(Ptx, SharedMemoryIsCountedThroughCallsAndOnce) {
  const std::string functions =
      ".shared .b8 a[100];\n.shared .b8 b[10];\n.func f();\n"
      ".func g() { call f; mov.u32 %r1, a; }\n.func f() { .shared .b8 own[1]; call g; mov.u32 %r1, a; }\n";
  EXPECT_EQ(kernel_of(functions + ".entry k() { call g; call f; mov.u32 %r1, b; }").static_shared_bytes, 112U);
  EXPECT_EQ(kernel_of(functions + ".entry k() { /* a */ // b\n .pragma \"a\"; ld.b %r1, [b]; }").static_shared_bytes,
            16U);
}

TEST(Ptx, EndsAtItsNul) {
  EXPECT_EQ(read(ptx(".entry k { }") + "\0.entry l { }"s).kernels.size(), 1U);
}

TEST(Ptx, ADeclarationIsNoKernelAndABodyReplacesIt) {
  const KernelImage image =
      read(ptx(".entry k(.param .u32 a);\n.extern .func f;\n.entry k(.param .u32 a) { }\n.entry l();"));
  ASSERT_EQ(image.kernels.size(), 1U);
  EXPECT_EQ(image.kernels[0].parameters.size(), 1U);
}

TEST(Ptx, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_EQ(refusal(""),
            "PTX line 1: begins with ''; PTX begins with .version, a cubin with ELF's magic number, a fat "
            "binary with its own");
  EXPECT_THAT(refusal("int main() {}"), HasSubstr("PTX line 1: begins with 'int'"));
  EXPECT_EQ(refusal(".version 8.3\n.entry k { }"),
            "PTX line 2: ends without .target; every module names its architecture");
  EXPECT_EQ(refusal(".version 8.3\n.target x86"), "PTX line 2: target is 'x86', it must be sm_NUMBER");
  EXPECT_EQ(refusal(ptx(".entry k() {\n{ ret; }\n")), "PTX line 6: ends inside of the body of 'k'");
  EXPECT_EQ(refusal(ptx(".entry k()\n.maxntid 1, x { }")),
            "PTX line 5: 'x' stands where a number up to 4294967295 must");
  EXPECT_EQ(refusal(ptx(".entry k(.param .u32)")), "PTX line 4: ')' stands where a parameter's name must");
  EXPECT_EQ(refusal(ptx(".entry k(.param .align 3 .b8 a)")), "PTX line 4: .align 3 is no power of two");
  EXPECT_EQ(refusal(ptx(".entry k(.param x)")), "PTX line 4: 'x' stands where a type must");
  EXPECT_EQ(refusal(ptx(".entry k(.param .b8 a[1048577])")),
            "PTX line 4: '1048577' stands where a number up to 1048576 must");
  EXPECT_EQ(refusal(ptx(".entry k(.param .b64 a[1000000])")), "PTX line 4: a variable of more than 1048576 bytes");
  EXPECT_EQ(refusal(ptx(".entry k { }\n.entry k { }")), "PTX line 5: function 'k' is there twice");
  EXPECT_EQ(refusal(ptx(".shared .b8 k[1];\n.entry k { }")), "PTX line 5: function 'k' has the name of a variable");
  EXPECT_EQ(refusal(ptx("}")), "PTX line 4: '}' that nothing opened");
  EXPECT_EQ(refusal(ptx(".const .b32 a[1] = { /*")), "PTX line 4: ends inside of '{'");
}

// The wire tests take the signature as it is read here.
TEST(Ptx, OfTheDocumentation) {
  const std::string page = file(KERNEL_TASKS_PAGE);
  const std::size_t begin = page.find("```ptx\n") + 7;
  const KernelImage image = read(page.substr(begin, page.find("```", begin) - begin));
  EXPECT_THAT(image.kernels,
              ElementsAre(KernelSignature{
                  .name = "saxpy", .parameters = {{0, 4}, {4, 4}, {8, 8}, {16, 8}, {24, 8}}, .max_threads = 256}));
}

// Each of 2,000 kernels calls one function that uses 2,000 variables: 4,000,000 uses to follow.
TEST(Ptx, TextThatWouldTakeForeverIsRefused) {
  std::string text = ptx("");
  std::string uses;
  for (int i = 0; i < 2000; ++i) text += fmt::format(".shared .b8 v{}[1];\n", i);
  for (int i = 0; i < 2000; ++i) uses += fmt::format("v{};", i);
  text += ".func f() {" + uses + "}\n";
  for (int i = 0; i < 2000; ++i) text += fmt::format(".entry k{}{{f;}}\n", i);
  EXPECT_THAT(refusal(text), HasSubstr("its functions use each other too often for their shared memory to be counted"));
}

// ---- cubins

TEST(Cubin, OfRealCompilersSaysWhatThePtxSaid) {
  for (const std::uint32_t target : {80U, 90U, 120U}) {
    const KernelImage image = read(file(testdata(fmt::format("kernels_sm_{}.cubin", target))));
    EXPECT_EQ(image.format, ImageFormat::kCubin);
    EXPECT_EQ(image.kernels, kKernels) << target;
    EXPECT_THAT(image.targets, ElementsAre(target));
  }
}

TEST(Cubin, ParametersOfMoreThan4KiB) {
  const KernelImage image = read(file(testdata("large_parameters_sm_90.cubin")));
  ASSERT_EQ(image.kernels.size(), 1U);
  EXPECT_THAT(image.kernels[0].parameters, ElementsAre(KernelParameter{0, 20000}, KernelParameter{20000, 8}));
  EXPECT_EQ(image.kernels[0].max_threads, 128U);
}

TEST(Cubin, AttributesOfAKernel) {
  CubinBuilder builder;
  builder.add_kernel("k",
                     testing::parameter_attribute(1, 8, 16) + "\x03\x19\x18\0"s +
                         testing::parameter_attribute(0, 0, 4) + testing::threads_attribute(0x05, 64, 2, 1) +
                         testing::threads_attribute(0x10, 64, 2, 1),
                     512);
  builder.add_symbol("device_function", 0x12, 0);
  const KernelImage image = read(builder.build());
  ASSERT_EQ(image.kernels.size(), 1U);
  EXPECT_EQ(image.kernels[0], (KernelSignature{.name = "k",
                                               .parameters = {{0, 4}, {8, 16}},
                                               .max_threads = 128,
                                               .required_threads = {64, 2, 1},
                                               .static_shared_bytes = 512}));
}

TEST(Cubin, ArchitectureOfOlderAndNewerToolsAndTheSystemsSharedMemory) {
  CubinBuilder builder;
  builder.add_kernel("k", "", 1024 + 64);
  builder.flags = 0x6005a04;
  builder.abi = 0x41;
  const KernelImage image = read(builder.build());
  EXPECT_THAT(image.targets, ElementsAre(90U));
  EXPECT_EQ(image.kernels.at(0).static_shared_bytes, 64U);
}

std::string refusal_of(const std::string& attributes) {
  CubinBuilder builder;
  builder.add_kernel("k", attributes);
  return refusal(builder.build());
}

TEST(Cubin, WhatIsWrongIsNamedWithItsSection) {
  EXPECT_EQ(refusal("\177ELF"), "cubin: its 4 bytes are less than a header");
  CubinBuilder builder;
  builder.machine = 62;
  EXPECT_EQ(refusal(builder.build()), "cubin: machine is 62; code of NVIDIA GPUs has 190");
  EXPECT_EQ(refusal_of("\x04\x17"), "cubin: section .nv.info.k: byte 0: an attribute is cut off");
  EXPECT_EQ(refusal_of("\x04\x17\x0c\0\0"s),
            "cubin: section .nv.info.k: byte 0: attribute 0x17 of format 4 is cut off or unknown");
  EXPECT_EQ(refusal_of("\x05\x17\0\0"s),
            "cubin: section .nv.info.k: byte 0: attribute 0x17 of format 5 is cut off or unknown");
  EXPECT_EQ(refusal_of("\x04\x05\x04\0abcd"s),
            "cubin: section .nv.info.k: attribute 0x05 has 4 bytes; it must have 12");
  EXPECT_EQ(refusal_of(testing::parameter_attribute(1, 0, 4)),
            "cubin: section .nv.info.k: parameter 1 is there twice, or others are missing");
  EXPECT_EQ(refusal_of(testing::parameter_attribute(0, 0, 4) + testing::parameter_attribute(0, 4, 4)),
            "cubin: section .nv.info.k: parameter 0 is there twice, or others are missing");
}

// Every byte is read or refused; nothing beyond the end is touched (the address sanitizer looks on).
TEST(Cubin, APieceOfItIsRefused) {
  const std::string image = file(testdata("kernels_sm_80.cubin"));
  for (std::size_t size = 4; size + 400 < image.size(); ++size) EXPECT_FALSE(read_kernel_image(image.substr(0, size)));
}

// The compiler itself, where it is at hand: tests of third parties install Triton, which brings one.
std::filesystem::path find_ptxas() {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(PTXAS_LIBRARIES, none)) {
    auto ptxas = entry.path() / "site-packages/triton/backends/nvidia/bin/ptxas";
    if (std::filesystem::exists(ptxas, none)) return ptxas;
  }
  return {};
}

TEST(Cubin, OfACompilerAtHandSaysWhatThePtxSaid) {
  const std::filesystem::path ptxas = find_ptxas();
  if (ptxas.empty()) GTEST_SKIP() << "no ptxas under " PTXAS_LIBRARIES "; tools/third-party installs one";
  const std::string cubin = ::testing::TempDir() + "kernel_image_test.cubin";
  const auto command =
      fmt::format("'{}' -arch=sm_100 '{}' -o '{}'", ptxas.string(), testdata("kernels.ptx").string(), cubin);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const KernelImage image = read(file(cubin));
  EXPECT_EQ(image.kernels, kKernels);
  EXPECT_THAT(image.targets, ElementsAre(100U));
  std::filesystem::remove(cubin);
}

// ---- fat binaries

std::string lz4(const std::string& text) {
  std::string out(LZ4_compressBound(static_cast<int>(text.size())), '\0');
  out.resize(
      LZ4_compress_default(text.data(), out.data(), static_cast<int>(text.size()), static_cast<int>(out.size())));
  return out;
}
std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

TEST(Fatbin, PlainAndCompressedPartsAreMerged) {
  const std::string text = file(testdata("kernels.ptx")) + '\0';
  const std::string cubin = file(testdata("kernels_sm_90.cubin"));
  const KernelImage image = read(testing::fatbin(testing::fatbin_entry(1, text) + testing::fatbin_entry(2, cubin) +
                                                 testing::fatbin_entry(1, lz4(text), 0x2000, text.size()) +
                                                 testing::fatbin_entry(2, zstd(cubin), 0x8000, cubin.size()) +
                                                 testing::fatbin_entry(99, "?")));
  EXPECT_EQ(image.format, ImageFormat::kFatbin);
  EXPECT_EQ(image.kernels, kKernels);
  EXPECT_THAT(image.targets, ElementsAre(80U, 90U));
}

TEST(Fatbin, TheStrictestLimitsOfAllArchitecturesCount) {
  const std::string first = ptx(".entry k() .maxntid 256 { .shared .b8 a[10]; }");
  const std::string second = ptx(".entry k() .maxntid 128 { .shared .b8 a[20]; }\n.entry l() {}");
  const std::string third = ptx(".entry k() { }");
  const KernelImage image = read(testing::fatbin(testing::fatbin_entry(1, first) + testing::fatbin_entry(1, second) +
                                                 testing::fatbin_entry(1, third)));
  ASSERT_EQ(image.kernels.size(), 2U);
  EXPECT_EQ(image.kernels[0].max_threads, 128U);
  EXPECT_EQ(image.kernels[0].static_shared_bytes, 32U);
}

TEST(Fatbin, ItsPtxForADeviceIsTheNewestThatRunsThere) {
  const auto target = [](const std::string& sm) {
    return ".version 7.1\n.target " + sm + "\n.address_size 64\n.entry k() {}\n";
  };
  const std::string cubin = file(testdata("kernels_sm_90.cubin"));
  const std::string image =
      testing::fatbin(testing::fatbin_entry(1, target("sm_70") + std::string(7, '\0')) +
                      testing::fatbin_entry(1, lz4(target("sm_80")), 0x2000, target("sm_80").size()) +
                      testing::fatbin_entry(1, target("sm_90")) + testing::fatbin_entry(2, cubin));
  EXPECT_EQ(ptx_of_image(image, 75).value(), target("sm_70"));  // without the zeros behind it
  EXPECT_EQ(ptx_of_image(image, 89).value(), target("sm_80"));
  EXPECT_EQ(ptx_of_image(target("sm_70"), 70).value(), target("sm_70"));
  EXPECT_EQ(ptx_of_image(image, 61).error().message, "its PTX is for sm_70 and later, the device is an sm_61");
  EXPECT_THAT(ptx_of_image(cubin, 90).error().message, HasSubstr("machine code and no PTX"));
  EXPECT_THAT(ptx_of_image(testing::fatbin(testing::fatbin_entry(2, cubin)), 90).error().message,
              HasSubstr("machine code and no PTX"));
}

TEST(Fatbin, WhatIsWrongIsNamedWithItsPlace) {
  const std::string text = ptx(".entry k() { }");
  EXPECT_EQ(refusal(testing::fatbin("")), "fat binary, byte 16: no PTX and no machine code in it");
  EXPECT_EQ(refusal(testing::fatbin(testing::fatbin_entry(1, text)).substr(0, 20)),
            "fat binary, byte 0: a header of 16 bytes and entries of 128, but the file has 20");
  EXPECT_EQ(refusal(testing::fatbin("short")), "fat binary, byte 16: an entry's header is cut off");
  EXPECT_THAT(refusal(testing::fatbin(testing::fatbin_entry(1, lz4(text), 0x2000, 1ULL << 40))),
              HasSubstr("a payload of 1099511627776 bytes; all of a file together may have 1 to 67108864"));
  EXPECT_THAT(refusal(testing::fatbin(testing::fatbin_entry(1, "not compressed", 0x2000, 100))),
              HasSubstr("the payload cannot be decompressed to 100 bytes"));
  EXPECT_THAT(refusal(testing::fatbin(testing::fatbin_entry(1, "not compressed", 0x8000, 100))),
              HasSubstr("the payload cannot be decompressed to 100 bytes"));
  EXPECT_EQ(refusal(testing::fatbin(testing::fatbin_entry(1, text) +
                                    testing::fatbin_entry(1, ptx(".entry k(.param .u32 a) { }")))),
            "fat binary: kernel 'k' has other parameters or other required threads for sm_80 than before");
  EXPECT_THAT(refusal(testing::fatbin(testing::fatbin_entry(1, "nonsense"))), HasSubstr("fat binary: PTX line 1"));
}

}  // namespace
}  // namespace fairlead
