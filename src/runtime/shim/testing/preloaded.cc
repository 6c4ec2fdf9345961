// Stands for the shim's library where a test only asks whether it was preloaded.
extern "C" int fairlead_test_preloaded() {
  return 1;
}
