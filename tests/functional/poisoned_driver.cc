// A libcuda.so.1 whose compiler crashes or never ends, for test_kernel_task_trials.py: it is linked to the software GPU's,
// which has everything else, and writes the number of the process that loads a module to the file LOADS.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dlfcn.h>

extern "C" __attribute__((visibility("default"))) int cuModuleLoadDataEx(void** module, const void* image,
                                                                         unsigned count, int* options, void** values) {
  static const auto load =
      reinterpret_cast<decltype(&cuModuleLoadDataEx)>(dlsym(dlopen(SOFTWARE_GPU, RTLD_NOW), "cuModuleLoadDataEx"));
  const int log = open(LOADS, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  dprintf(log, "%d\n", getpid());
  close(log);
  const char* text = static_cast<const char*>(image);
  if (strstr(text, "crash_the_compiler") != nullptr) abort();
  while (strstr(text, "hang_the_compiler") != nullptr) pause();
  return load(module, image, count, options, values);
}
