# Every examples/*.cpp is a program of its own, written as a user writes it.
file(GLOB example_sources CONFIGURE_DEPENDS examples/*.cpp)
add_custom_target(stet_examples)
foreach(source IN LISTS example_sources)
  cmake_path(GET source STEM name)
  add_executable(example_${name} ${source})
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_link_libraries(example_${name} PRIVATE stet::stet stet_options)
  add_dependencies(stet_examples example_${name})
endforeach()
