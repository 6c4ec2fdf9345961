#include "shim/resolve/hook_table.h"

// The table needs every hook's address and nobody's signature, so this file does not see the declarations.
#define SYMBOL_hook(symbol) __attribute__((visibility("default"))) int symbol();
#define SYMBOL_count(symbol) __attribute__((visibility("default"))) int symbol();
#define SYMBOL_pass(symbol)
extern "C" {
#define SYMBOL(name, symbol, decision) SYMBOL_##decision(symbol)
#include "shim_symbols.inc"
#undef SYMBOL
}
#undef SYMBOL_hook
#undef SYMBOL_count
#undef SYMBOL_pass

namespace fairlead::shim {

#define HOOK_OF_hook(symbol) reinterpret_cast<void*>(&::symbol)
#define HOOK_OF_count(symbol) reinterpret_cast<void*>(&::symbol)
#define HOOK_OF_pass(symbol) nullptr
const HookEntry kHookTable[] = {
#define SYMBOL(name, symbol, decision) {#name, #symbol, HOOK_OF_##decision(symbol)},
#include "shim_symbols.inc"
#undef SYMBOL
};

}  // namespace fairlead::shim
