// Deadlines of callers (Core::arrive). One that passes while its invocation waits completes it at once, and it is never delivered.
//
// Example: A starts for 9 s with invocation 1, which may take 5 s. At 5 s invocation 1 completes as expired. Its start goes on,
// holds its slot and is charged: otherwise callers with short deadlines could start instances at nobody's cost. At 9 s the
// instance is idle, and takes the next invocation.
#include "base/check.h"
#include "decide/core/state.h"

namespace fairlead {

void Core::State::expire_requests(Instant now, Actions& out) {
  while (const auto id = request_deadlines.take_due(now)) {
    Invocation& invocation = invocations.at(*id);
    if (invocation.instance) {
      append_completion(now, *id, OutcomeKind::kExpired, Duration(0), out);
      invocation.expired = true;
    } else {
      FL_CHECK(policy->cancel(now, invocation.flow, *id), "invocation {}", id->value());
      complete(now, *id, OutcomeKind::kExpired, Duration(0), out);
    }
  }
}

void Core::State::serve(Instant now, Instance& instance, Actions& out) {
  expire_requests(now, out);
  if (!invocations.at(instance.bound).expired) return deliver(now, instance, out);
  const InstanceId id = instance.id;
  requeue(now, instance.bound, out);
  end_run(now, instance, out);
  idle(now, id, out);
}

}  // namespace fairlead
