// Random calls, carried out in bytes: every buffer holds what the caller gave when the kernels begin, every answer is what
// the kernels left, and nobody's bytes are anybody else's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>

#include "runtime/device_server/call_layout.h"
#include "runtime/device_server/range_allocator.h"

namespace fairlead {
namespace {

BufferSpec buffer_of(BufferRole role, std::int64_t bytes) {
  BufferSpec buffer;
  buffer.role = role;
  buffer.bytes = Bytes(bytes);
  return buffer;
}

struct RandomCall {
  std::vector<BufferSpec> buffers;
  std::vector<std::uint64_t> temporary_offsets;
  Bytes temporary_bytes{0};
  std::vector<wire::BoundObject> constants;
  wire::RunCall order;
  std::map<std::uint64_t, std::string> objects;  // bytes by number; outputs: not written yet
  std::map<std::uint32_t, std::string> given;    // what a buffer shall hold when the kernels begin
};

std::string bytes_of(std::size_t size, std::uint32_t buffer) {
  return std::string(size, static_cast<char>('a' + buffer));
}

RandomCall random_call() {
  RandomCall call;
  const auto flip = [] { return *rc::gen::arbitrary<bool>(); };
  const auto buffers = *rc::gen::inRange<std::uint32_t>(1, 12);
  std::uint64_t last_object = 0;
  const auto object = [&](const std::string& bytes) {
    call.objects[++last_object] = bytes;
    return last_object;
  };
  for (std::uint32_t b = 0; b < buffers; ++b) {
    const auto role = static_cast<BufferRole>(
        *rc::gen::element(static_cast<int>(BufferRole::kInput), static_cast<int>(BufferRole::kOutput),
                          static_cast<int>(BufferRole::kInOut), static_cast<int>(BufferRole::kConstant),
                          static_cast<int>(BufferRole::kTemporary)));
    const auto size = *rc::gen::inRange<std::size_t>(1, 2000);
    call.buffers.push_back(buffer_of(role, static_cast<std::int64_t>(size)));
    call.temporary_offsets.push_back(0);
    const std::string bytes = bytes_of(size, b);
    if (role == BufferRole::kTemporary) {
      call.temporary_offsets[b] = static_cast<std::uint64_t>(call.temporary_bytes.count());
      call.temporary_bytes += Bytes(static_cast<std::int64_t>(RangeAllocator::round_up(size)));
      continue;
    }
    if (role != BufferRole::kOutput) call.given[b] = bytes;
    if (role == BufferRole::kConstant) {
      call.constants.push_back({b, object(bytes), ""});
      continue;
    }
    std::uint64_t input = 0;
    if (role != BufferRole::kOutput) {
      input = flip() ? object(bytes) : 0;
      call.order.inputs.push_back({b, input, input == 0 ? bytes : ""});
    }
    if (role == BufferRole::kInput) continue;
    const bool same = input != 0 && *rc::gen::inRange(0, 4) == 0;  // answered as the object that it came as
    call.order.outputs.push_back({b, same ? input : flip() ? object(std::string(size, '?')) : 0, ""});
  }
  return call;
}

// A device of bytes: scratch, objects and staging.
class Device {
 public:
  Device(RandomCall& call, const CallLayout& layout)
      : call_(call),
        layout_(layout),
        scratch_(static_cast<std::size_t>(layout.scratch.count()), '-'),
        staging_(static_cast<std::size_t>(layout.staging.count()), '-') {}

  std::string read(std::uint32_t buffer) { return std::string(at(buffer), size(buffer)); }
  void write(std::uint32_t buffer, const std::string& bytes) { std::copy(bytes.begin(), bytes.end(), at(buffer)); }

  void bring_in() {
    for (const auto& copy : layout_.copies) write(copy.buffer, call_.objects.at(copy.object));
    auto input = layout_.inputs.begin();
    for (const auto& bound : call_.order.inputs) {
      if (bound.object != 0) continue;
      RC_ASSERT(input->buffer == bound.buffer && input->bytes == bound.bytes.size());
      stage(input->staging_offset, bound.bytes);
      ++input;
    }
    RC_ASSERT(input == layout_.inputs.end());
    for (const auto& staged : layout_.inputs)
      write(staged.buffer, staging_.substr(staged.staging_offset, staged.bytes));
  }
  std::map<std::uint32_t, std::string> bring_out() {
    std::map<std::uint32_t, std::string> answers;
    for (const auto& output : layout_.outputs) stage(output.staging_offset, read(output.buffer));
    for (const auto& output : layout_.outputs) {
      answers[output.buffer] = staging_.substr(output.staging_offset, output.bytes);
    }
    return answers;
  }

 private:
  std::size_t size(std::uint32_t buffer) const { return static_cast<std::size_t>(call_.buffers[buffer].bytes.count()); }
  char* at(std::uint32_t buffer) {
    const CallLayout::Place& place = layout_.places.at(buffer);
    if (place.object != 0) return call_.objects.at(place.object).data();
    RC_ASSERT(place.scratch_offset % RangeAllocator::kUnit == 0u);
    RC_ASSERT(place.scratch_offset + size(buffer) <= scratch_.size());
    return scratch_.data() + place.scratch_offset;
  }
  void stage(std::uint64_t offset, const std::string& bytes) {
    RC_ASSERT(offset + bytes.size() <= staging_.size());
    std::copy(bytes.begin(), bytes.end(), staging_.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  RandomCall& call_;
  const CallLayout& layout_;
  std::string scratch_, staging_;
};

RC_GTEST_PROP(CallLayoutProperty, EveryBufferHoldsWhatWasGivenAndEveryAnswerIsWhatWasMade, ()) {
  RandomCall call = random_call();
  const std::map<std::uint64_t, std::string> before = call.objects;
  const CallLayout layout =
      lay_out_call(call.buffers, {call.temporary_offsets, call.temporary_bytes}, call.constants, call.order);
  Device device(call, layout);
  device.bring_in();
  for (const auto& [buffer, bytes] : call.given) RC_ASSERT(device.read(buffer) == bytes);
  // The kernels write all that they may, each buffer with bytes of its own.
  for (std::uint32_t b = 0; b < call.buffers.size(); ++b) {
    const BufferRole role = call.buffers[b].role;
    if (role == BufferRole::kInput || role == BufferRole::kConstant) continue;
    device.write(b, bytes_of(static_cast<std::size_t>(call.buffers[b].bytes.count()), b + 13));
  }
  for (std::uint32_t b = 0; b < call.buffers.size(); ++b) {
    const BufferRole role = call.buffers[b].role;
    if (role == BufferRole::kInput || role == BufferRole::kConstant) continue;
    RC_ASSERT(device.read(b) == bytes_of(static_cast<std::size_t>(call.buffers[b].bytes.count()), b + 13));
  }
  for (const auto& [buffer, bytes] : call.given) {
    if (call.buffers[buffer].role != BufferRole::kInOut) RC_ASSERT(device.read(buffer) == bytes);
  }
  const auto answers = device.bring_out();
  for (const auto& output : call.order.outputs) {
    const auto made = bytes_of(static_cast<std::size_t>(call.buffers[output.buffer].bytes.count()), output.buffer + 13);
    RC_ASSERT((output.object == 0 ? answers.at(output.buffer) : call.objects.at(output.object)) == made);
  }
  for (const auto& input : call.order.inputs) {  // an input that is answered as another object stays as it was
    const auto is_written = [&](const auto& output) { return output.object == input.object; };
    const bool written = std::any_of(call.order.outputs.begin(), call.order.outputs.end(), is_written);
    if (input.object != 0 && !written) RC_ASSERT(call.objects.at(input.object) == before.at(input.object));
  }
}

// The example of the header.
TEST(CallLayout, OfInlineBuffersAndOfAnInOutThatComesFromAnotherObject) {
  const std::vector<BufferSpec> buffers = {buffer_of(BufferRole::kInput, 512), buffer_of(BufferRole::kInOut, 512),
                                           buffer_of(BufferRole::kOutput, 512)};
  wire::RunCall order;
  order.inputs = {{0, 0, std::string(512, 'x')}, {1, 7, ""}};
  order.outputs = {{1, 9, ""}, {2, 0, ""}};
  const std::vector<std::uint64_t> none(3);
  const CallLayout layout = lay_out_call(buffers, {none, Bytes(0)}, {}, order);
  using Place = CallLayout::Place;
  EXPECT_THAT(layout.places, testing::ElementsAre(Place{0, 512}, Place{9, 0}, Place{0, 0}));
  ASSERT_EQ(layout.copies.size(), 1u);
  EXPECT_EQ(layout.copies[0].object, 7u);
  EXPECT_EQ(layout.copies[0].buffer, 1u);
  ASSERT_EQ(layout.inputs.size(), 1u);
  EXPECT_EQ(layout.inputs[0].staging_offset, 0u);
  ASSERT_EQ(layout.outputs.size(), 1u);
  EXPECT_EQ(layout.outputs[0].staging_offset, 512u);
  EXPECT_EQ(layout.scratch, Bytes(1024));
  EXPECT_EQ(layout.staging, Bytes(1024));
}

}  // namespace
}  // namespace fairlead
