// Each frame lists its fields once, in visit_fields(); a writer and a reader walk the list. Native byte order, lengths as 64
// bits, the alternative's index first.
#include "wire/device_frames.h"

#include <cstring>
#include <type_traits>

namespace fairlead::wire {
namespace {

template <typename Fields>
void visit_fields(Fields& f, SuppliedObject& x) {
  f(x.object), f(x.bytes), f(x.descriptor);
}
template <typename Fields>
void visit_fields(Fields& f, BoundObject& x) {
  f(x.buffer), f(x.object), f(x.bytes);
}
template <typename Fields>
void visit_fields(Fields& f, ModuleImage& x) {
  f(x.sha256), f(x.bytes), f(x.descriptor);
}
template <typename Fields>
void visit_fields(Fields& f, RegisterSession& x) {
  f(x.session), f(x.tenant), f(x.task), f(x.modules), f(x.constants), f(x.supplied), f(x.most_width_percent);
}
template <typename Fields>
void visit_fields(Fields& f, DropSession& x) {
  f(x.session);
}
template <typename Fields>
void visit_fields(Fields& f, RunCall& x) {
  f(x.call), f(x.session), f(x.inputs), f(x.outputs), f(x.supplied), f(x.ring_inputs), f(x.ring_outputs);
}
template <typename Fields>
void visit_fields(Fields& f, RingSlot& x) {
  f(x.buffer), f(x.slot), f(x.start), f(x.ring);
}
template <typename Fields>
void visit_fields(Fields& f, OpenRing& x) {
  f(x.ring), f(x.slots), f(x.slot_bytes);
}
template <typename Fields>
void visit_fields(Fields& f, CloseRing& x) {
  f(x.ring);
}
template <typename Fields>
void visit_fields(Fields& f, PaceSession& x) {
  f(x.session), f(x.whole);
}
template <typename Fields>
void visit_fields(Fields& f, FetchObject& x) {
  f(x.fetch), f(x.object);
}
template <typename Fields>
void visit_fields(Fields& f, DropObject& x) {
  f(x.object);
}
template <typename Fields>
void visit_fields(Fields& f, ModuleTrial::Module& x) {
  f(x.sha256), f(x.code);
}
template <typename Fields>
void visit_fields(Fields& f, ModuleTrial& x) {
  f(x.session), f(x.modules), f(x.range_base), f(x.range_bytes), f(x.guard_bytes), f(x.architecture);
}
template <typename Fields>
void visit_fields(Fields& f, ModulesMeasured& x) {
  f(x.session), f(x.variable_bytes);
}
template <typename Fields>
void visit_fields(Fields& f, VariablesPlaced& x) {
  f(x.session), f(x.addresses), f(x.to_load);
}
template <typename Fields>
void visit_fields(Fields& f, ModulesFenced::Bytes& x) {
  f(x.offset), f(x.bytes);
}
template <typename Fields>
void visit_fields(Fields& f, ModulesFenced::Module& x) {
  f(x.ptx), f(x.variables);
}
template <typename Fields>
void visit_fields(Fields& f, ModulesFenced& x) {
  f(x.session), f(x.modules);
}
template <typename Fields>
void visit_fields(Fields& f, TrialEnded& x) {
  f(x.session), f(x.module), f(x.error);
}
template <typename Fields>
void visit_fields(Fields& f, ServerReady& x) {
  f(x.device), f(x.memory);
}
template <typename Fields>
void visit_fields(Fields& f, SessionReady& x) {
  f(x.session), f(x.error), f(x.init_ns), f(x.width_percent), f(x.why_not_narrower);
}
template <typename Fields>
void visit_fields(Fields& f, ServerCounters& x) {
  f(x.hits), f(x.host_hits), f(x.misses), f(x.evictions), f(x.write_backs), f(x.loaded_bytes), f(x.written_back_bytes);
  f(x.device_used), f(x.device_mapped), f(x.host_used), f(x.modules);
}
template <typename Fields>
void visit_fields(Fields& f, Duration& x) {
  std::int64_t ns = x.count();
  f(ns);
  x = Duration(ns);
}
template <typename Fields>
void visit_fields(Fields& f, TaskPhases& x) {
  f(x.kernel_run), f(x.kernel_init), f(x.device_malloc), f(x.device_copy), f(x.data_layer), f(x.overhead);
}
template <typename Fields>
void visit_fields(Fields& f, CallDone& x) {
  f(x.call), f(x.outcome), f(x.error), f(x.missing), f(x.outputs), f(x.phases), f(x.gpu_ns), f(x.session_bytes);
  f(x.counters);
}
template <typename Fields>
void visit_fields(Fields& f, ObjectFetched& x) {
  f(x.fetch), f(x.error);
}
template <typename Fields>
void visit_fields(Fields& f, ConstantsMissing::Session& x) {
  f(x.session), f(x.bytes);
}
template <typename Fields>
void visit_fields(Fields& f, ConstantsMissing& x) {
  f(x.sessions), f(x.bytes_per_second), f(x.resident);
}
template <typename Fields>
void visit_fields(Fields& f, CallLoaded& x) {
  f(x.call);
}
template <typename Fields>
void visit_fields(Fields& f, ServerFault& x) {
  f(x.error), f(x.calls);
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  template <typename T>
  void operator()(T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      out_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      visit_fields(*this, value);
    }
  }
  void operator()(std::string& text) {
    std::uint64_t size = text.size();
    (*this)(size);
    out_.append(text);
  }
  template <typename T>
  void operator()(std::vector<T>& list) {
    std::uint64_t size = list.size();
    (*this)(size);
    for (T& item : list) (*this)(item);
  }

 private:
  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  void operator()(T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      if (sizeof value > rest_.size()) return spoil();
      std::memcpy(&value, rest_.data(), sizeof value);
      rest_.remove_prefix(sizeof value);
    } else {
      visit_fields(*this, value);
    }
  }
  void operator()(std::string& text) {
    const std::uint64_t size = count();
    text.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  template <typename T>
  void operator()(std::vector<T>& list) {
    const std::uint64_t size = count();
    for (std::uint64_t i = 0; i < size && ok_; ++i) (*this)(list.emplace_back());
  }
  bool complete() const { return ok_ && rest_.empty(); }

 private:
  std::uint64_t count() {
    std::uint64_t size = 0;
    (*this)(size);
    if (size > rest_.size()) spoil();
    return ok_ ? size : 0;
  }
  void spoil() {
    ok_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

template <typename Frame>
std::string encode_frame(const Frame& frame) {
  std::string out;
  Writer write(out);
  auto kind = static_cast<std::uint8_t>(frame.index());
  write(kind);
  // The field lists are shared with the reader, hence not const; a writer changes nothing.
  std::visit([&write]<typename T>(const T& alternative) { visit_fields(write, const_cast<T&>(alternative)); }, frame);
  return out;
}

template <typename Frame, std::size_t kIndex = 0>
bool decode_alternative(std::size_t kind, Reader& read, Frame& out) {
  if constexpr (kIndex == std::variant_size_v<Frame>) {
    return false;
  } else {
    if (kind != kIndex) return decode_alternative<Frame, kIndex + 1>(kind, read, out);
    visit_fields(read, out.template emplace<kIndex>());
    return read.complete();
  }
}

template <typename Frame>
Result<Frame> decode_frame(std::string_view bytes) {
  Reader read(bytes);
  std::uint8_t kind = 0xff;
  read(kind);
  Frame frame;
  if (decode_alternative(kind, read, frame)) return frame;
  return fail(Errc::kCorrupt, "a device server's frame of kind {} and {} bytes is damaged", kind, bytes.size());
}

}  // namespace

std::string encode(const FrameToServer& frame) {
  return encode_frame(frame);
}
std::string encode(const FrameToNode& frame) {
  return encode_frame(frame);
}
Result<FrameToServer> decode_frame_to_server(std::string_view bytes) {
  return decode_frame<FrameToServer>(bytes);
}
Result<FrameToNode> decode_frame_to_node(std::string_view bytes) {
  return decode_frame<FrameToNode>(bytes);
}

}  // namespace fairlead::wire
