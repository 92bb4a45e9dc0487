// Spellings that differ between compilers. The only place with attributes that are not of standard C++. Must not know
// what they are used for.
#pragma once

// Instead of `inline`: a function that the compiler must inline.
#if defined(_MSC_VER) && !defined(__clang__)
#define ONLINEFOREST_ALWAYS_INLINE __forceinline
#else
#define ONLINEFOREST_ALWAYS_INLINE [[gnu::always_inline]] inline
#endif

// A member of an empty class that takes no memory. For compilers on Windows that are compatible with Microsoft's, the
// standard attribute has no effect.
#if defined(_MSC_VER)
#define ONLINEFOREST_NO_UNIQUE_ADDRESS [[msvc::no_unique_address]]
#else
#define ONLINEFOREST_NO_UNIQUE_ADDRESS [[no_unique_address]]
#endif
