// libstdc++'s std::random_device of Debian 12 asks glibc for arc4random, which glibc has since 2.36. With this one in its place
// the portable build asks for no glibc newer than 2.35, which is Ubuntu 22.04's: the compiler's own unwinder asks for that
// (_dl_find_object). In C: it is linked into the shim too, which has no C++ library.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// The numbers are keys: without the kernel's there is nothing to go on with.
uint32_t arc4random(void) {
  uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) abort();
  return number;
}
