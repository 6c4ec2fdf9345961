// Every symbol of the runtime's ABI exists: those that no other file defines are these weak functions, which return
// cudaErrorNotSupported. They ignore their arguments, whatever they are.
#include "softgpu/cudart/runtime.h"

namespace {

int not_supported() {
  return softgpu::cudart::report(cudaErrorNotSupported);
}

}  // namespace

// The names are declared with other signatures where they are implemented, so they are spelled as assembler names here.
#define SYMBOL(symbol)                                                                              \
  extern "C" int fallback_##symbol() __asm__(#symbol) __attribute__((weak, visibility("default"))); \
  int fallback_##symbol() {                                                                         \
    return not_supported();                                                                         \
  }
#include "cudart_symbols.inc"
#undef SYMBOL
