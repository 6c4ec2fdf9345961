// Every symbol of the driver with the name cuGetProcAddress knows it by, and its hook; in the order of Symbol (driver.h).
// No declaration of the driver is seen here: the table has addresses only.
#pragma once

namespace fairlead::shim {

struct HookEntry {
  const char* name;
  const char* symbol;
  void* hook;  // null: the driver's own is handed out
};
extern const HookEntry kHookTable[];

}  // namespace fairlead::shim
