// Textures and surfaces: filtering, addressing modes, formats, layers, queries and faults.
#include <map>

#include "softgpu/ptx/opcode_test.h"
#include "softgpu/ptx/texture.h"

namespace softgpu::ptx {
namespace {

using namespace testing;  // the short names of types
using Addressing = TextureDescription::Addressing;
using Channel = TextureDescription::Channel;

constexpr u64 kHandle = 0x7700000001;

class OneTexture final : public TextureTable {
 public:
  TextureDescription description;
  bool find_texture(u64 handle, TextureDescription& out) const override {
    out = description;
    return handle == kHandle;
  }
  bool find_surface(u64 handle, TextureDescription& out) const override { return find_texture(handle, out); }
};

struct Texel4 {
  float x, y, z, w;
};

// Lane l fetches at (a[l], b[l], c[l]); `body` computes %f4-%f7 of %f0, %f1, %f2 (or %r0, %r1, %r2).
std::vector<Texel4> fetch(TestDevice& device, const OneTexture& table, const std::string& body,
                          const std::vector<float>& a, const std::vector<float>& b = {},
                          const std::vector<float>& c = {}, u64 handle = kHandle, FaultKind fault = FaultKind::kNone) {
  const std::string text =
      header() +
      ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 out, .param .u64 texture) {\n.reg "
      ".b64 %d<8>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b16 %h<4>;\n"
      "mov.u32 %r7, %tid.x;\nmul.wide.u32 %d0, %r7, 4;\nld.param.u64 %d1, [pa];\nadd.u64 %d1, %d1, %d0;\nld.global.f32 "
      "%f0, [%d1];\nld.param.u64 %d1, [pb];\nadd.u64 %d1, %d1, %d0;\nld.global.f32 %f1, [%d1];\n"
      "ld.param.u64 %d1, [pc];\nadd.u64 %d1, %d1, %d0;\nld.global.f32 %f2, [%d1];\ncvt.rni.s32.f32 %r0, "
      "%f0;\ncvt.rni.s32.f32 %r1, %f1;\ncvt.rni.s32.f32 %r2, %f2;\nld.param.u64 %d2, [texture];\n" +
      body +
      "\nld.param.u64 %d1, [out];\nmul.wide.u32 %d0, %r7, 16;\nadd.u64 %d1, %d1, %d0;\nst.global.v4.f32 [%d1], "
      "{%f4,%f5,%f6,%f7};\nret;\n}\n";
  const auto module = load_or_fail(text, device);
  if (module == nullptr) return {};
  const auto upload = [&](std::vector<float> values) {
    values.resize(32);
    return device.upload(values);
  };
  const u64 out = device.upload(std::vector<Texel4>(32));
  const auto arguments = pack_arguments(module->kernel("k")->info(), upload(a), upload(b), upload(c), out, handle);
  Launch launch;
  launch.block = {static_cast<unsigned>(a.size())};
  launch.parameters = arguments;
  launch.textures = &table;
  const Outcome outcome = module->kernel("k")->run(device, launch);
  EXPECT_EQ(outcome.fault, fault) << outcome.fault_detail;
  return device.download<Texel4>(out, a.size());
}

std::string tex(const std::string& opcode, const std::string& coordinates) {
  covers(opcode);
  return opcode + " {%f4,%f5,%f6,%f7}, [%d2, {" + coordinates + "}];";
}

// 4 x 2 x 2 elements of one f32: 100 z + 10 y + x.
OneTexture cube(TestDevice& device) {
  std::vector<float> values;
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 4; ++x) values.push_back(static_cast<float>(100 * z + 10 * y + x));
  OneTexture table;
  table.description = {
      .base = device.upload(values), .width = 4, .height = 2, .depth = 2, .pitch_bytes = 16, .slice_bytes = 32};
  return table;
}

TEST(Texture, TheNearestElementInOneToThreeDimensionsAndLayers) {
  TestDevice device;
  const OneTexture table = cube(device);
  const std::vector<float> x{0.5f, 1.99f, 3, 2.2f}, y{0, 1.5f, 1, 0.2f}, z{0, 0, 1.5f, 1};
  const auto expect = [&](const std::string& body, const std::vector<float>& wanted) {
    const auto texels = fetch(device, table, body, x, y, z);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(texels[i].x, wanted[i]) << body << " " << i;
    EXPECT_EQ(texels[0].y, 0);
    EXPECT_EQ(texels[0].w, 1);
  };
  expect(tex("tex.1d.v4.f32.f32", "%f0"), {0, 1, 3, 2});
  expect(tex("tex.2d.v4.f32.f32", "%f0, %f1"), {0, 11, 13, 2});
  expect(tex("tex.3d.v4.f32.f32", "%f0, %f1, %f2, %f2"), {0, 11, 113, 102});
  expect(tex("tex.a1d.v4.f32.f32", "%r2, %f0"), {0, 1, 103, 102});
  expect(tex("tex.a2d.v4.f32.f32", "%r2, %f0, %f1, %f1"), {0, 11, 113, 102});
  expect(tex("tex.1d.v4.f32.s32", "%r0"), {0, 2, 3, 2});
  expect(tex("tex.2d.v4.f32.s32", "%r0, %r1"), {0, 12, 13, 2});
  covers("tex.level.2d.v4.f32.f32");
  expect("tex.level.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d2, {%f0,%f1}], 0f00000000;", {0, 11, 13, 2});
  covers("tex.grad.2d.v4.f32.f32");
  expect("tex.grad.2d.v4.f32.f32 {%f4,%f5,%f6,%f7}, [%d2, {%f0,%f1}], {%f0,%f1}, {%f0,%f1};", {0, 11, 13, 2});
}

TEST(Texture, LinearFilteringWeighsTheNeighbours) {
  TestDevice device;
  OneTexture table = cube(device);
  table.description.is_linear = true;
  const auto line = fetch(device, table, tex("tex.1d.v4.f32.f32", "%f0"), {2.25f, 0.5f, 0, 4, 1.001f});
  EXPECT_FLOAT_EQ(line[0].x, 1.75f);
  EXPECT_FLOAT_EQ(line[1].x, 0);
  EXPECT_FLOAT_EQ(line[2].x, 0) << "clamped";
  EXPECT_FLOAT_EQ(line[3].x, 3) << "clamped";
  EXPECT_FLOAT_EQ(line[4].x, 128.0f / 256) << "weights have 8 bits";
  const auto plane = fetch(device, table, tex("tex.2d.v4.f32.f32", "%f0, %f1"), {1, 2.5f}, {1, 0.75f});
  EXPECT_FLOAT_EQ(plane[0].x, 0.5f + 5);
  EXPECT_FLOAT_EQ(plane[1].x, 2 + 2.5f);
  const auto space = fetch(device, table, tex("tex.3d.v4.f32.f32", "%f0, %f1, %f2, %f2"), {1.5f}, {1}, {1});
  EXPECT_FLOAT_EQ(space[0].x, 1 + 5 + 50);
}

TEST(Texture, AddressingModes) {
  TestDevice device;
  OneTexture table = cube(device);
  table.description.is_normalised = true;
  const std::vector<float> x{-0.1f, 1.1f, 1.3f, -0.3f, 0.6f};
  const auto expect = [&](Addressing mode, const std::vector<float>& wanted) {
    table.description.addressing.fill(mode);
    const auto texels = fetch(device, table, tex("tex.1d.v4.f32.f32", "%f0"), x);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(texels[i].x, wanted[i]) << "mode " << static_cast<int>(mode) << " " << x[i];
  };
  table.description.border = {9, 9, 9, 9};
  expect(Addressing::kClamp, {0, 3, 3, 0, 2});
  expect(Addressing::kWrap, {3, 0, 1, 2, 2});
  expect(Addressing::kMirror, {0, 3, 2, 1, 2});
  expect(Addressing::kBorder, {9, 9, 9, 9, 2});
  table.description.is_normalised = false;
  table.description.addressing.fill(Addressing::kWrap);
  EXPECT_EQ(fetch(device, table, tex("tex.1d.v4.f32.f32", "%f0"), {5})[0].x, 3) << "elements cannot wrap: clamped";
  EXPECT_EQ(fetch(device, table, tex("tex.1d.v4.f32.s32", "%r0"), {7})[0].x, 0) << "behind linear memory: zero";
  const auto odd = fetch(device, table, tex("tex.1d.v4.f32.f32", "%f0"), {NAN, INFINITY, -INFINITY});
  EXPECT_EQ(odd[1].x, 3);
  EXPECT_EQ(odd[2].x, 0);
}

TEST(Texture, FormatsOfChannels) {
  TestDevice device;
  OneTexture table;
  const auto expect = [&](auto values, Channel channel, bool normalised, const std::string& type,
                          std::array<double, 4> wanted) {
    table.description = {
        .base = device.upload(values), .width = 1, .channel = channel, .channels = 4, .reads_normalised = normalised};
    const auto texel = fetch(device, table, tex("tex.1d.v4." + type + ".f32", "%f0"), {0})[0];
    const float read[] = {texel.x, texel.y, texel.z, texel.w};
    for (std::size_t i = 0; i < 4; ++i) {
      if (type == "f32") {
        EXPECT_FLOAT_EQ(read[i], static_cast<float>(wanted[i]));
      } else {
        EXPECT_EQ(std::bit_cast<s32>(read[i]), static_cast<s32>(wanted[i]));
      }
    }
  };
  expect(std::vector<u8>{0, 255, 51, 128}, Channel::kU8, true, "f32", {0, 1, 0.2, 128 / 255.0});
  expect(std::vector<u8>{0, 255, 51, 128}, Channel::kU8, false, "u32", {0, 255, 51, 128});
  expect(std::vector<s8>{0, -128, 127, -1}, Channel::kS8, true, "f32", {0, -1, 1, -1 / 127.0});
  expect(std::vector<s8>{0, -128, 127, -1}, Channel::kS8, false, "s32", {0, -128, 127, -1});
  expect(std::vector<u16>{0, 65535, 1, 2}, Channel::kU16, true, "f32", {0, 1, 1 / 65535.0, 2 / 65535.0});
  expect(std::vector<s16>{-32768, 32767, 1, 2}, Channel::kS16, false, "s32", {-32768, 32767, 1, 2});
  expect(std::vector<u32>{7, 0x7fffffff, 1, 2}, Channel::kU32, false, "u32", {7, 0x7fffffff, 1, 2});
  expect(std::vector<u16>{0x3c00, 0xc000, 0x3800, 0}, Channel::kF16, false, "f32", {1, -2, 0.5, 0});
  expect(std::vector<float>{1.5f, -2, 3, 4}, Channel::kF32, false, "f32", {1.5, -2, 3, 4});
}

TEST(Texture, Queries) {
  TestDevice device;
  const OneTexture table = cube(device);
  for (const auto& [opcode, wanted] : {std::pair{"txq.width.b32", 4},
                                       {"txq.height.b32", 2},
                                       {"txq.depth.b32", 2},
                                       {"txq.normalized_coords.b32", 0},
                                       {"suq.width.b32", 4},
                                       {"suq.height.b32", 2}}) {
    covers(opcode);
    const auto result = fetch(device, table, std::string(opcode) + " %r3, [%d2];\ncvt.rn.f32.u32 %f4, %r3;", {0});
    EXPECT_EQ(result[0].x, wanted) << opcode;
  }
}

TEST(Texture, WhatDoesNotExistFaults) {
  TestDevice device;
  OneTexture table = cube(device);
  fetch(device, table, tex("tex.1d.v4.f32.f32", "%f0"), {0}, {}, {}, 5, FaultKind::kIllegalInstruction);
  table.description.base = 4096;
  fetch(device, table, tex("tex.1d.v4.f32.f32", "%f0"), {0}, {}, {}, kHandle, FaultKind::kIllegalAddress);
}

TEST(Surface, LoadsStoresAndEdges) {
  for (const auto& [bits, count] :
       {std::pair{8, 1}, {16, 1}, {32, 1}, {64, 1}, {8, 2}, {8, 4}, {16, 2}, {16, 4}, {32, 2}, {32, 4}, {64, 2}}) {
    TestDevice device;
    std::vector<u8> bytes(64);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<u8>(3 * i);
    OneTexture table;
    table.description = {.base = device.upload(bytes), .width = 8, .height = 2, .pitch_bytes = 32};
    const std::string vector = count == 1 ? "" : ".v" + std::to_string(count), type = ".b" + std::to_string(bits);
    const std::string reg = bits == 64   ? "%d"
                            : bits == 32 ? "%r"
                                         : "%h",
                      first = bits == 64   ? "4"
                              : bits == 32 ? "3"
                                           : "0";
    std::string values = count == 1 ? reg + first : "{" + reg + first;
    for (int i = 1; i < count; ++i) values += ", " + reg + std::to_string(first[0] - '0' + i);
    if (count > 1) values += "}";
    for (const std::string mode : {".trap", ".clamp", ".zero"}) {
      const std::string load = "suld.b.2d" + vector + type + mode, store = "sust.b.2d" + vector + type + mode;
      covers(load);
      covers(store);
      // From byte 16 of row 0 to byte 0 of row 1.
      fetch(device, table,
            load + " " + values + ", [%d2, {%r0, %r1}];\nmov.u32 %r1, 1;\nmov.u32 %r0, 0;\n" + store +
                " [%d2, {%r0, %r1}], " + values + ";",
            {16}, {0});
      const auto after = device.download<u8>(table.description.base, 64);
      for (int i = 0; i < bits / 8 * count; ++i)
        EXPECT_EQ(after[static_cast<std::size_t>(32 + i)], bytes[static_cast<std::size_t>(16 + i)]) << load;
    }
  }
  TestDevice device;
  OneTexture table;
  table.description = {.base = device.upload(std::vector<u32>{1, 2, 3, 4}), .width = 4, .pitch_bytes = 16};
  const auto load = [&](const std::string& mode, FaultKind fault) {
    return std::bit_cast<u32>(fetch(device, table, "suld.b.1d.b32" + mode + " %r3, [%d2, {%r0}];\nmov.b32 %f4, %r3;",
                                    {16}, {}, {}, kHandle, fault)[0]
                                  .x);
  };
  for (const char* mode : {".trap", ".clamp", ".zero"}) covers("suld.b.1d.b32" + std::string(mode));
  EXPECT_EQ(load(".clamp", FaultKind::kNone), 4u);
  EXPECT_EQ(load(".zero", FaultKind::kNone), 0u);
  load(".trap", FaultKind::kIllegalAddress);
}

}  // namespace
}  // namespace softgpu::ptx
