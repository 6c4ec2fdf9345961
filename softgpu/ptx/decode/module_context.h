// What the functions of a module have in common while they are decoded.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "softgpu/ptx/decode/constant_pool.h"
#include "softgpu/ptx/isa.h"
#include "softgpu/ptx/program.h"
#include "softgpu/ptx/text/ast.h"

namespace softgpu::ptx {

// What a module-level name means.
struct Symbol {
  enum class Kind : std::uint8_t { kDevice, kShared, kDynamicShared, kFunction };
  Kind kind = Kind::kDevice;
  std::uint64_t value = 0;  // device address, offset in shared memory, or function index
};
using SymbolTable = std::unordered_map<std::string_view, Symbol>;

// All must outlive the decoding; the instruction set, the program too.
struct ModuleContext {
  const InstructionSet& isa;
  const SymbolTable& symbols;
  const std::vector<ast::Function>& functions;
  Program& program;
  ConstantPool& constants;

  // Null when the module does not know the name.
  const Symbol* find_symbol(std::string_view name) const {
    const auto entry = symbols.find(name);
    return entry == symbols.end() ? nullptr : &entry->second;
  }
};

}  // namespace softgpu::ptx
