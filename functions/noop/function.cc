// noop: returns its payload. Measures what the platform costs; uses no GPU.
#include "fairlead/runtime.h"

int main() {
  return fairlead::run([](const fairlead::Event& event) {
    return fairlead::Response(std::string(event.payload), "application/octet-stream");
  });
}
