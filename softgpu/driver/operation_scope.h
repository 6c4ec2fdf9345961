// Whether the calling thread is within an operation of some stream: such a thread was let through by whoever submitted the
// operation, and must not wait for the process's lock, which waits for it.
#pragma once

namespace softgpu {

// While it lives, the calling thread runs an operation. May be nested: who waits for a stream helps it along.
class OperationScope {
 public:
  OperationScope() : outer_(t_within) { t_within = true; }
  ~OperationScope() { t_within = outer_; }
  OperationScope(const OperationScope&) = delete;
  OperationScope& operator=(const OperationScope&) = delete;

  static bool within() { return t_within; }

 private:
  static inline thread_local bool t_within = false;
  const bool outer_;
};

}  // namespace softgpu
