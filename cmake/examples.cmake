# Every examples/*.cpp and examples/*/*.cpp is a program of its own, written as a user writes it. build/…/examples has the
# same folders.
file(GLOB example_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/examples examples/*.cpp examples/*/*.cpp)
add_custom_target(stet_examples)
set(STET_EXAMPLE_NAMES "")
foreach(source IN LISTS example_sources)
  cmake_path(REMOVE_EXTENSION source OUTPUT_VARIABLE name)
  cmake_path(GET name PARENT_PATH folder)
  cmake_path(GET name FILENAME program)
  string(REPLACE "/" "_" target "example_${name}")
  add_executable(${target} examples/${source})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${program}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples/${folder})
  target_link_libraries(${target} PRIVATE stet::stet stet_options)
  add_dependencies(stet_examples ${target})
  list(APPEND STET_EXAMPLE_NAMES ${name})
endforeach()
