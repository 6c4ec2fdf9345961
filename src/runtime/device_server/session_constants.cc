#include "runtime/device_server/session_constants.h"

namespace fairlead {

void SessionConstants::add(const wire::RegisterSession& frame, const KernelTask& task) {
  std::vector<SessionResidency::Constant> constants;
  for (const wire::BoundObject& bound : frame.constants) {
    const ObjectId object(bound.object);
    constants.push_back({object, task.buffers[bound.buffer].bytes, objects_.cache().on_device(object)});
  }
  residency_.add(frame.session, constants);
}

void SessionConstants::measured(const CopyStreams::Batch& loads) {
  load_bytes_per_second_ = objects_.copies().bytes_per_second(loads).value_or(load_bytes_per_second_);
}

std::optional<wire::ConstantsMissing> SessionConstants::changes() {
  for (const ObjectId object : objects_.take_moved()) residency_.moved(object, objects_.cache().on_device(object));
  wire::ConstantsMissing missing{.sessions = {}, .bytes_per_second = load_bytes_per_second_};
  for (const SessionResidency::Missing& change : residency_.take_changes()) {
    missing.sessions.push_back({change.session, static_cast<std::uint64_t>(change.bytes.count())});
  }
  missing.resident = static_cast<std::uint64_t>(residency_.resident().count());
  if (missing.sessions.empty()) return std::nullopt;
  return missing;
}

}  // namespace fairlead
