# The libraries behind stet/cpu: LLVM 19 (its C API, linked statically), oneDNN, and LAPACK by OpenBLAS (linked statically).
# Behind stet/data: zlib, libpng and libjpeg-turbo. Target: stet_thirdparty.
find_program(STET_LLVM_CONFIG NAMES llvm-config-19 HINTS /usr/lib/llvm-19/bin REQUIRED
             DOC "llvm-config of LLVM 19")
# passes: LLVMRunPasses; x86: code generator, assembler and disassembler; the linker takes what is used.
set(STET_LLVM_COMPONENTS orcjit passes x86 irreader bitwriter)

function(stet_llvm_config result)
  execute_process(COMMAND ${STET_LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(text UNIX_COMMAND "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

stet_llvm_config(STET_LLVM_VERSION --version)
if(NOT STET_LLVM_VERSION MATCHES "^19\\.")
  message(FATAL_ERROR "${STET_LLVM_CONFIG} is of LLVM ${STET_LLVM_VERSION}; stet needs LLVM 19")
endif()
stet_llvm_config(llvm_include --includedir)
stet_llvm_config(llvm_libraries --link-static --libfiles ${STET_LLVM_COMPONENTS})
stet_llvm_config(llvm_system_libraries --link-static --system-libs ${STET_LLVM_COMPONENTS})

find_path(STET_DNNL_INCLUDE dnnl.h REQUIRED)
find_library(STET_DNNL_LIBRARY dnnl REQUIRED)

find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)

# The serial variant, as an archive: the shared library's name is that of all variants, so which one a program gets, and
# with how many threads of its own, would be the system's choice; and its symbols would be everybody's.
find_library(STET_OPENBLAS_LIBRARY libopenblas.a PATH_SUFFIXES openblas-serial REQUIRED)
find_package(Threads REQUIRED)

add_library(stet_thirdparty INTERFACE)
target_include_directories(stet_thirdparty SYSTEM INTERFACE ${llvm_include} ${STET_DNNL_INCLUDE})
target_link_libraries(stet_thirdparty INTERFACE
  ${llvm_libraries} ${STET_OPENBLAS_LIBRARY}
  # LLVM lists libraries that its parts we use do not need (libxml2, z3): those are not recorded.
  -Wl,--as-needed ${llvm_system_libraries} ${STET_DNNL_LIBRARY} ZLIB::ZLIB PNG::PNG JPEG::JPEG gomp Threads::Threads ${CMAKE_DL_LIBS})
target_link_options(stet_thirdparty INTERFACE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
# Debian's archive hands out its scratch memory without a lock: cpu/lapack_memory.cpp does it instead, for any number of
# threads; and it forgets the processor at the end of the process, where a user's static may still call it.
target_link_options(stet_thirdparty INTERFACE -Wl,--wrap=blas_memory_alloc -Wl,--wrap=blas_memory_free
  -Wl,--wrap=gotoblas_dynamic_quit)
