// Special registers are values of the hardware, all harmless but for one: where the driver keeps its workspace.
#include "gpu/fence/plain_operands.h"

namespace fairlead::fence {

Status is_plain(const Operand& operand) {
  if (operand.kind == Operand::Kind::kNumber) return {};
  if (operand.kind == Operand::Kind::kAddress) {
    return fail(Errc::kInvalidArgument, "an address where none is known to stand");
  }
  if (operand.kind == Operand::Kind::kList) return are_plain(operand.elements);
  if (operand.name.starts_with("%envreg")) {
    return fail(Errc::kInvalidArgument,
                "the driver's workspace for cooperative launches lies outside the tenant's memory");
  }
  const bool is_special = operand.name.starts_with("%") || operand.name == "WARP_SZ" || operand.name == "_";
  if (operand.register_id >= 0 || (is_special && operand.variable < 0)) return {};
  return fail(Errc::kInvalidArgument, "'{}' is no register, and only mov and cvta may take an address", operand.name);
}

Status are_plain(const std::vector<Operand>& operands) {
  for (const Operand& operand : operands) {
    if (Status plain = is_plain(operand); !plain) return plain;
  }
  return {};
}

Status are_plain_beside_addresses(const std::vector<Operand>& operands) {
  for (const Operand& operand : operands) {
    const bool has_coordinates = !operand.elements.empty();  // of a texture, where a second address could hide
    if (operand.kind == Operand::Kind::kAddress && !has_coordinates) continue;
    if (Status plain = is_plain(operand); !plain) return plain;
  }
  return {};
}

}  // namespace fairlead::fence
