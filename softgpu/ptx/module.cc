// Loading: parse, place variables, decode. See machine.h for the contract.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "softgpu/ptx/decode/decode.h"
#include "softgpu/ptx/float_environment.h"
#include "softgpu/ptx/isa.h"
#include "softgpu/ptx/launch.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/native/compile.h"
#include "softgpu/ptx/text/parser.h"

namespace softgpu::ptx {
namespace {

constexpr std::size_t kDeviceAlignment = 256;  // what ModuleMemory gives at least
constexpr unsigned kMostRegisters = 255;
constexpr std::size_t kLargestConstants = 64 << 10;
constexpr std::size_t kLargestShared = 227 << 10;  // of any architecture

class LoadedKernel final : public Kernel {
 public:
  LoadedKernel(KernelInfo info, const Program& program, Code& code)
      : info_(std::move(info)), program_(program), code_(code) {}
  const KernelInfo& info() const override { return info_; }
  void make_ready() const override {
    if (is_ready()) return;
    std::call_once(compiled_, [this] {
      Code* const functions[] = {&code_};
      native_ = native::compile(program_, functions, isa_);
      ready_.store(true, std::memory_order_release);
    });
  }
  bool is_ready() const override { return ready_.load(std::memory_order_acquire); }
  Outcome run(const AddressSpace& memory, const Launch& launch) const override {
    make_ready();
    return run_grid(program_, code_, info_, memory, launch);
  }

 private:
  KernelInfo info_;
  const Program& program_;
  Code& code_;  // changed by compiling it, once
  const InstructionSet& isa_ = instruction_set();
  mutable std::once_flag compiled_;
  mutable std::atomic<bool> ready_{false};
  mutable std::shared_ptr<const void> native_;
};

class LoadedModule final : public Module {
 public:
  LoadedModule(ModuleMemory& memory, std::function<void(std::string_view)> print)
      : memory_(memory), program_(std::move(print)) {}
  ~LoadedModule() override {
    for (const std::uint64_t address : allocations_) memory_.release(address);
  }
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  const Kernel* kernel(std::string_view name) const override {
    const auto entry = kernels_.find(name);
    return entry == kernels_.end() ? nullptr : entry->second.get();
  }
  const GlobalVariable* global(std::string_view name) const override {
    const auto entry = globals_.find(name);
    return entry == globals_.end() ? nullptr : &entry->second;
  }
  std::vector<std::string> kernel_names() const override {
    std::vector<std::string> names;
    for (const auto& [name, kernel] : kernels_) names.push_back(name);
    return names;
  }

  ModuleMemory& memory() { return memory_; }
  // Zeroed device memory that lives as long as the module; 0 when there is none left.
  std::uint64_t allocate(std::size_t bytes, std::size_t alignment) {
    const std::uint64_t address = allocate_untouched(bytes, alignment);
    if (address != 0) std::memset(reinterpret_cast<void*>(address), 0, bytes);
    return address;
  }
  std::uint64_t allocate_untouched(std::size_t bytes, std::size_t alignment) {
    const std::size_t slack = alignment > kDeviceAlignment ? alignment : 0;
    const std::uint64_t address = memory_.allocate(std::max<std::size_t>(bytes, 1) + slack);
    if (address == 0) return 0;
    allocations_.push_back(address);
    return align_up(address, alignment);
  }

  Program& program() { return program_; }
  void add_kernel(KernelInfo info, Code& code) {
    std::string name = info.name;
    kernels_[std::move(name)] = std::make_unique<LoadedKernel>(std::move(info), program_, code);
  }
  void add_global(std::string_view name, GlobalVariable variable) { globals_[std::string(name)] = variable; }

 private:
  ModuleMemory& memory_;
  Program program_;
  std::vector<std::uint64_t> allocations_;
  std::map<std::string, std::unique_ptr<LoadedKernel>, std::less<>> kernels_;
  std::map<std::string, GlobalVariable, std::less<>> globals_;
};

// ---- shared memory

// Where each .shared variable lies. Those that only one kernel uses overlap with other kernels'; those of functions and
// of several kernels come first, at addresses of their own.
class SharedLayout {
 public:
  SharedLayout(const ast::Module& tree, SymbolTable& symbols) {
    for (const ast::Variable& variable : tree.variables) {
      if (variable.space == Space::kShared && !variable.is_extern) variables_.emplace(variable.name, &variable);
    }
    for (const ast::Variable& variable : tree.variables) {
      if (variable.space == Space::kShared) variables_.emplace(variable.name, &variable);
    }
    for (std::size_t i = 0; i < tree.functions.size(); ++i) users_of(tree.functions[i], i);
    for (const ast::Variable& variable : tree.variables) {
      const bool is_meant = variable.space == Space::kShared && variables_.at(variable.name) == &variable;
      if (is_meant && !is_private(variable, tree)) place(variable, common_bytes_, symbols);
    }
    for (const auto& [function, names] : used_) {
      std::size_t end = common_bytes_;
      for (const std::string_view name : names) {
        const ast::Variable& variable = *variables_.at(name);
        if (is_private(variable, tree)) place(variable, end, symbols);
      }
      ends_[function] = end;
    }
  }

  // Static shared memory of a kernel; a kernel that calls may reach the common variables.
  std::size_t bytes(std::size_t function, bool calls) const {
    const auto end = ends_.find(function);
    if (end != ends_.end()) return end->second;
    return calls ? common_bytes_ : 0;
  }

 private:
  void users_of(const ast::Function& function, std::size_t index) {
    for (const auto* operands : {&function.operands, &function.list_elements}) {
      for (const ast::Operand& operand : *operands) {
        if (operand.kind != ast::Operand::Kind::kSymbol || !variables_.contains(operand.name)) continue;
        users_[operand.name].insert(index);
        if (function.is_entry) used_[index].insert(operand.name);
      }
    }
  }

  bool is_private(const ast::Variable& variable, const ast::Module& tree) const {
    const auto users = users_.find(variable.name);
    return users != users_.end() && users->second.size() == 1 && tree.functions[*users->second.begin()].is_entry;
  }

  // An external variable of no size is the memory that a launch adds; one with a size that nothing defines is as good as
  // its own definition.
  void place(const ast::Variable& variable, std::size_t& end, SymbolTable& symbols) {
    if (variable.is_extern && variable.bytes == 0) {
      symbols[variable.name] = {Symbol::Kind::kDynamicShared, 0};
      return;
    }
    end = align_up(end, variable.alignment);
    symbols[variable.name] = {Symbol::Kind::kShared, end};
    end += variable.bytes;
  }

  std::map<std::string_view, const ast::Variable*> variables_;
  std::map<std::string_view, std::set<std::size_t>> users_;
  std::map<std::size_t, std::set<std::string_view>> used_;
  std::map<std::size_t, std::size_t> ends_;
  std::size_t common_bytes_ = 0;
};

// ---- loading

class Loader {
 public:
  Loader(ModuleMemory& memory, std::function<void(std::string_view)> print)
      : module_(std::make_unique<LoadedModule>(memory, std::move(print))) {}

  LoadResult run(std::string_view text) {
    ParseResult parsed = parse(text);
    if (parsed.error) return {nullptr, std::move(*parsed.error)};
    tree_ = std::move(parsed.module);
    names_ = std::move(parsed.names);
    name_functions();
    const bool ok = name_aliases() && place_constants() && place_globals() && initialise() && decode();
    instruction_set().leave();
    if (!ok) return {nullptr, std::move(error_)};
    return {std::move(module_), {}};
  }

 private:
  bool fail(LoadError::Kind kind, int line, std::string message) {
    error_ = {kind, line, std::move(message)};
    return false;
  }

  // A declaration may precede or follow the definition.
  void name_functions() {
    for (std::size_t i = 0; i < tree_.functions.size(); ++i) {
      const ast::Function& function = tree_.functions[i];
      const auto [entry, inserted] = symbols_.try_emplace(function.name, Symbol{Symbol::Kind::kFunction, i});
      if (!inserted && function.has_body) entry->second.value = i;
      auto code = std::make_unique<Code>();
      code->name = function.name;
      code->index = static_cast<std::uint32_t>(i);
      code->is_entry = function.is_entry;
      module_->program().functions.push_back(std::move(code));
    }
  }

  bool name_aliases() {
    for (const ast::Alias& alias : tree_.aliases) {
      const auto target = symbols_.find(alias.target);
      if (target == symbols_.end() || target->second.kind != Symbol::Kind::kFunction ||
          !tree_.functions[target->second.value].has_body) {
        return fail(LoadError::Kind::kUnresolvedSymbol, alias.line,
                    "alias '" + std::string(alias.name) + "' of '" + std::string(alias.target) +
                        "', which is no function of the module");
      }
      symbols_[alias.name] = target->second;
    }
    return true;
  }

  bool out_of_memory(const ast::Variable& variable) {
    return fail(LoadError::Kind::kOutOfMemory, variable.line,
                "no device memory for variable '" + std::string(variable.name) + "' of " +
                    std::to_string(variable.bytes) + " bytes");
  }

  bool too_large(int line, std::string_view memory, std::size_t bytes, std::size_t most) {
    return fail(
        LoadError::Kind::kUnsupported, line,
        std::to_string(bytes) + " bytes of " + std::string(memory) + " memory; there are " + std::to_string(most));
  }

  // All .const variables share one allocation, the constant bank.
  bool place_constants() {
    std::size_t end = 0;
    std::vector<std::pair<const ast::Variable*, std::size_t>> offsets;
    for (const ast::Variable& variable : tree_.variables) {
      if (variable.space != Space::kConst || variable.is_extern) continue;
      end = align_up(end, variable.alignment);
      offsets.emplace_back(&variable, end);
      end += variable.bytes;
    }
    if (offsets.empty()) return true;
    if (end > kLargestConstants) return too_large(offsets.back().first->line, "constant", end, kLargestConstants);
    const std::uint64_t bank = module_->allocate(end, 4096);
    if (bank == 0) return out_of_memory(*offsets.front().first);
    constant_bytes_ = end;
    module_->program().constant_bank = {bank, bank + end};
    for (const auto& [variable, offset] : offsets) define(*variable, bank + offset);
    return true;
  }

  bool place_globals() {
    for (const ast::Variable& variable : tree_.variables) {
      if (variable.space != Space::kGlobal || variable.is_extern) continue;
      const std::uint64_t address =
          variable.is_managed ? place_managed(variable) : module_->allocate(variable.bytes, variable.alignment);
      if (address == 0) return out_of_memory(variable);
      define(variable, address);
    }
    return true;
  }

  // Aligned to a page, which is more than a variable can ask for.
  std::uint64_t place_managed(const ast::Variable& variable) {
    const auto managed = module_->memory().allocate_managed(variable.name, variable.bytes);
    if (!managed.is_new) shared_.insert(&variable);
    return managed.address;
  }

  void define(const ast::Variable& variable, std::uint64_t address) {
    symbols_[variable.name] = {Symbol::Kind::kDevice, address};
    module_->add_global(variable.name, {address, variable.bytes});
  }

  bool initialise() {
    for (const ast::Variable& variable : tree_.variables) {
      if (variable.initialisers.empty() || shared_.contains(&variable)) continue;
      if (variable.space == Space::kShared || variable.is_extern) {
        return fail(LoadError::Kind::kUnsupported, variable.line,
                    "variable '" + std::string(variable.name) + "' cannot have initial values");
      }
      auto* at = reinterpret_cast<std::byte*>(symbols_.at(variable.name).value);
      for (const ast::Initialiser& value : variable.initialisers) {
        std::uint64_t bits = value.bits;
        if (!value.symbol.empty() && !symbol_address(value, variable, bits)) return false;
        std::memcpy(at, &bits, std::min(size_of(variable.type), sizeof bits));
        at += size_of(variable.type);
      }
    }
    return true;
  }

  bool symbol_address(const ast::Initialiser& value, const ast::Variable& variable, std::uint64_t& bits) {
    const auto symbol = symbols_.find(value.symbol);
    if (symbol == symbols_.end() || symbol->second.kind == Symbol::Kind::kShared || size_of(variable.type) != 8) {
      return fail(LoadError::Kind::kUnresolvedSymbol, variable.line,
                  "initial value of '" + std::string(variable.name) + "': no 64-bit address of '" +
                      std::string(value.symbol) + "'");
    }
    const bool is_function = symbol->second.kind == Symbol::Kind::kFunction;
    bits += is_function ? kCodeWindow + 16 * symbol->second.value : symbol->second.value;
    return true;
  }

  bool decode() {
    const SharedLayout shared(tree_, symbols_);
    Program& program = module_->program();
    ConstantPool constants;
    const ModuleContext module{instruction_set(), symbols_, tree_.functions, program, constants};
    for (std::size_t i = 0; i < tree_.functions.size(); ++i) {
      if (!tree_.functions[i].has_body) continue;
      if (auto error = decode_function(module, i)) {
        error_ = std::move(*error);
        return false;
      }
      const Code& code = *program.functions[i];
      if (code.is_entry) continue;
      program.deepest_frame = std::max(program.deepest_frame, code.frame_bytes);
      program.deepest_local = std::max(program.deepest_local, code.local_bytes);
    }
    constants.store(program);
    if (program.allocates && !place_heap()) return false;
    std::vector<Code*> callees;  // may run in launches of several kernels at once, so they are compiled now
    for (const auto& code : program.functions) {
      if (!code->is_entry && !code->instructions.empty()) callees.push_back(code.get());
    }
    program.native = native::compile(program, callees, instruction_set());
    for (std::size_t i = 0; i < tree_.functions.size(); ++i) {
      const ast::Function& function = tree_.functions[i];
      if (!function.is_entry || !function.has_body) continue;
      Code& code = *program.functions[i];
      const std::size_t shared_bytes = shared.bytes(i, code.calls);
      if (shared_bytes > kLargestShared) return too_large(function.line, "static shared", shared_bytes, kLargestShared);
      module_->add_kernel(describe(function, code, shared_bytes), code);
    }
    return true;
  }

  bool place_heap() {
    DeviceHeap* heap = module_->memory().kernel_heap();
    module_->program().heap = heap;
    return heap != nullptr || fail(LoadError::Kind::kOutOfMemory, 0, "no device memory for the heap of malloc");
  }

  KernelInfo describe(const ast::Function& function, const Code& code, std::size_t shared_bytes) const {
    KernelInfo info;
    info.name = function.name;
    for (const ast::Variable& parameter : function.parameters) {
      const std::size_t offset = align_up(info.parameter_bytes, parameter.alignment);
      info.parameters.push_back({offset, parameter.bytes});
      info.parameter_bytes = offset + parameter.bytes;
    }
    info.static_shared_bytes = shared_bytes;
    info.local_bytes = code.local_bytes;
    info.constant_bytes = constant_bytes_;
    info.registers = std::min(code.registers, kMostRegisters);
    if (function.max_threads != 0) info.max_threads = std::min(function.max_threads, info.max_threads);
    return info;
  }

  std::unique_ptr<LoadedModule> module_;
  ast::Module tree_;
  std::deque<std::string> names_;  // of the tree
  SymbolTable symbols_;
  std::set<const ast::Variable*> shared_;  // managed variables that have their content
  std::size_t constant_bytes_ = 0;
  LoadError error_;
};

}  // namespace

LoadResult load_module(std::string_view text, ModuleMemory& memory, std::function<void(std::string_view)> print) {
  const FloatEnvironment environment;  // constants are read and rounded
  return Loader(memory, std::move(print)).run(text);
}

}  // namespace softgpu::ptx
