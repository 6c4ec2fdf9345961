// What clang's -Wthread-safety reads (tools/lint/thread_safety.py): which lock guards a field, which a function needs.
// Empty for every other compiler, so the build knows nothing of them.
#pragma once

#if defined(__clang__)
#define SOFTGPU_THREAD_ANNOTATION(...) __attribute__((__VA_ARGS__))
#else
#define SOFTGPU_THREAD_ANNOTATION(...)
#endif

// Of a type: a lock; a guard that holds one for a scope.
#define SOFTGPU_CAPABILITY(name) SOFTGPU_THREAD_ANNOTATION(capability(name))
#define SOFTGPU_SCOPED_CAPABILITY SOFTGPU_THREAD_ANNOTATION(scoped_lockable)

// Of a lock: the order in which it is taken.
#define SOFTGPU_ACQUIRED_BEFORE(...) SOFTGPU_THREAD_ANNOTATION(acquired_before(__VA_ARGS__))

// Of a field: read and written, or what it points to is, only while the lock is held.
#define SOFTGPU_GUARDED_BY(lock) SOFTGPU_THREAD_ANNOTATION(guarded_by(lock))
#define SOFTGPU_PT_GUARDED_BY(lock) SOFTGPU_THREAD_ANNOTATION(pt_guarded_by(lock))

// Of a function: the caller holds the locks (and still does afterwards), or does not.
#define SOFTGPU_REQUIRES(...) SOFTGPU_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define SOFTGPU_REQUIRES_SHARED(...) SOFTGPU_THREAD_ANNOTATION(requires_shared_capability(__VA_ARGS__))
#define SOFTGPU_EXCLUDES(...) SOFTGPU_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

// Of a function: it takes them, or lets go of them. Without a name: the lock, or what the guard holds, is the object itself.
#define SOFTGPU_ACQUIRE(...) SOFTGPU_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define SOFTGPU_RELEASE(...) SOFTGPU_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define SOFTGPU_ACQUIRE_SHARED(...) SOFTGPU_THREAD_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define SOFTGPU_RELEASE_SHARED(...) SOFTGPU_THREAD_ANNOTATION(release_shared_capability(__VA_ARGS__))
// Of a function: whoever calls it is as safe from others as if the lock were held.
#define SOFTGPU_ASSERT_CAPABILITY(...) SOFTGPU_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))
// Of a function: the lock that it hands out is this one.
#define SOFTGPU_RETURN_CAPABILITY(lock) SOFTGPU_THREAD_ANNOTATION(lock_returned(lock))

// Of a function that the analysis cannot follow. Each use has a comment that says why.
#define SOFTGPU_NO_THREAD_SAFETY_ANALYSIS SOFTGPU_THREAD_ANNOTATION(no_thread_safety_analysis)
