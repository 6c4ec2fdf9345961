// The ways of a segment that are rarely taken: calls of the runtime, and code that lies behind the segment's own.
//
// The straight way jumps to a label that code out of line binds. That code is emitted last, when the registers hold other
// rows, so it takes with it whatever it needs of its place (Place, TrackedRows).
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "softgpu/ptx/native/layout.h"

namespace softgpu::ptx::native {

class SlowWays {
 public:
  // All must outlive this, `calls` the code, too.
  SlowWays(Assembler& assembler, const Runtime& runtime, std::deque<SlowCall>& calls)
      : as_(assembler), runtime_(runtime), calls_(calls) {}

  // What a call is told. It stays where it is, since the code has its address.
  const SlowCall& keep(const SlowCall& call) { return calls_.emplace_back(call); }
  // Code that calls the runtime; all registers but those that callees save are lost.
  void access(const SlowCall& kept) { call(reinterpret_cast<const void*>(runtime_.access), kept); }
  void arithmetic(const SlowCall& kept) { call(reinterpret_cast<const void*>(runtime_.arithmetic), kept); }
  void materialise(const SlowCall& kept) { call(reinterpret_cast<const void*>(runtime_.materialise), kept); }

  // `emit` writes code out of line. It may defer more.
  void defer(std::function<void()> emit) { deferred_.push_back(std::move(emit)); }
  // Writes what was deferred, in that order.
  void emit_deferred();

 private:
  void call(const void* function, const SlowCall& kept);

  Assembler& as_;
  const Runtime& runtime_;
  std::deque<SlowCall>& calls_;
  std::vector<std::function<void()>> deferred_;
};

}  // namespace softgpu::ptx::native
