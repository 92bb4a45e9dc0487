// The main function of the test program; doctest's implementation is compiled here alone.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
