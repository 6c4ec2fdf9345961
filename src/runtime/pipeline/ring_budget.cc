#include "runtime/pipeline/ring_budget.h"

namespace fairlead {

Bytes RingBudget::held(const std::string& function) const {
  const auto found = state_->by_function.find(function);
  return found == state_->by_function.end() ? Bytes(0) : found->second;
}

Result<std::shared_ptr<void>> RingBudget::take(const std::string& function, Bytes bytes) {
  const auto refuse = [&](Errc code, const char* setting, Bytes has, Bytes bound) {
    return fail(
        code,
        "{} is {} bytes of host memory, of which {} are held: {} more are wanted, for slots of a tensor between "
        "stages. Make the tensor smaller, or the setting larger",
        setting, bound.count(), has.count(), bytes.count());
  };
  if (bytes > bounds_.function - held(function)) {
    return refuse(Errc::kTooLarge, "pipeline-function-memory", held(function), bounds_.function);
  }
  if (bytes > bounds_.node - held()) {
    return refuse(Errc::kResourceExhausted, "pipeline-memory", held(), bounds_.node);
  }
  state_->all += bytes;
  state_->by_function[function] += bytes;
  return std::shared_ptr<void>(nullptr, [state = state_, function, bytes](void*) {
    state->all -= bytes;
    const auto found = state->by_function.find(function);
    if (found == state->by_function.end()) return;  // a hold of nothing, after all others of the function
    if ((found->second -= bytes) == Bytes(0)) state->by_function.erase(found);
  });
}

}  // namespace fairlead
