// The library lives as long as the process: what a user's static object does in its destructor may need all of it, also
// the compiler. So none of its statics is ever destroyed, neither ours nor those of LLVM, which is linked in: the linker
// sends their registrations here (--wrap in CMakeLists.txt). Memory goes back with the process.

extern "C" int __wrap___cxa_atexit(void (*)(void*), void*, void*);  // NOLINT: the linker's name

extern "C" int __wrap___cxa_atexit(void (*)(void*), void*, void*) { return 0; }
