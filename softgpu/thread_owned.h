// A value of its own for every thread, there for as long as the thread can call anything.
//
// A `thread_local` object with a destructor is gone when the destructors of globals, atexit handlers and other threads'
// exits run; a program may use the device in all of them. The value here is reached through a plain pointer. It is deleted
// when its thread ends, behind all destructors of thread_local objects, and never when the process exits. Whoever asks
// after that, in what runs still later in the thread, gets a new one.
//
// Example: static std::vector<CUcontext>& stack = thread_owned<std::vector<CUcontext>, StackTag>();
#pragma once

#include <pthread.h>

namespace softgpu {

// `Tag` tells values of one type apart.
template <class T, class Tag = T>
T& thread_owned() {
  static thread_local T* value = nullptr;
  if (value != nullptr) [[likely]]
    return *value;
  // No key left (there are 1,024): the value stays when its thread has gone.
  struct Key {
    pthread_key_t key = 0;
    bool made = false;
  };
  static const Key key = [] {
    Key made;
    made.made = ::pthread_key_create(&made.key, [](void* ended) {
                  value = nullptr;
                  delete static_cast<T*>(ended);
                }) == 0;
    return made;
  }();
  T* const owned = new T;
  value = owned;
  if (key.made) ::pthread_setspecific(key.key, owned);
  return *owned;
}

}  // namespace softgpu
