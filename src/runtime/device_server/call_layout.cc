#include "runtime/device_server/call_layout.h"

#include <algorithm>

#include "runtime/device_server/range_allocator.h"

namespace fairlead {
namespace {

// A region that grows at its end.
class Region {
 public:
  explicit Region(Bytes taken) : end_(static_cast<std::uint64_t>(taken.count())) {}
  std::uint64_t append(std::uint64_t bytes) {
    const std::uint64_t at = end_;
    end_ += RangeAllocator::round_up(bytes);
    return at;
  }
  Bytes size() const { return Bytes(static_cast<std::int64_t>(end_)); }

 private:
  std::uint64_t end_;
};

bool is_in(const std::vector<wire::RingSlot>& slots, std::uint32_t buffer) {
  return std::ranges::any_of(slots, [buffer](const wire::RingSlot& slot) { return slot.buffer == buffer; });
}

}  // namespace

CallLayout lay_out_call(std::span<const BufferSpec> buffers, const Temporaries& temporaries,
                        std::span<const wire::BoundObject> constants, const wire::RunCall& order) {
  CallLayout layout;
  Region scratch(temporaries.bytes), staging(Bytes(0));
  const auto size_of = [&](std::uint32_t buffer) { return static_cast<std::uint64_t>(buffers[buffer].bytes.count()); };
  layout.places.resize(buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].role == BufferRole::kTemporary) layout.places[b].scratch_offset = temporaries.offsets[b];
  }
  for (const auto& constant : constants) layout.places[constant.buffer].object = constant.object;
  for (const auto& input : order.inputs) {
    if (input.object == 0)
      layout.inputs.push_back({input.buffer, staging.append(input.bytes.size()), input.bytes.size()});
  }
  for (const auto& output : order.outputs) {
    CallLayout::Place& place = layout.places[output.buffer];
    place.object = output.object;
    if (output.object != 0) continue;
    const std::uint64_t bytes = size_of(output.buffer);
    place.scratch_offset = scratch.append(bytes);
    if (is_in(order.ring_outputs, output.buffer)) continue;
    layout.outputs.push_back({output.buffer, staging.append(bytes), bytes});
  }
  for (const auto& input : order.inputs) {
    CallLayout::Place& place = layout.places[input.buffer];
    if (buffers[input.buffer].role == BufferRole::kInOut) {  // is where its output is
      if (input.object != 0 && input.object != place.object) layout.copies.push_back({input.object, input.buffer});
    } else {
      place.object = input.object;
      if (input.object == 0) place.scratch_offset = scratch.append(size_of(input.buffer));
    }
  }
  for (const auto& input : order.ring_inputs) {
    if (buffers[input.buffer].role == BufferRole::kInOut) continue;  // is where its output is
    layout.places[input.buffer].scratch_offset = scratch.append(size_of(input.buffer));
  }
  layout.scratch = scratch.size();
  layout.staging = staging.size();
  return layout;
}

}  // namespace fairlead
