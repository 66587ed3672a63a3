# A folder's files are compiled as one: most of what a file costs is reading headers. A build to debug compiles each file
# alone, so that an edit costs little there, and so that a file that does not include what it uses does not compile
# (tests/run --long makes that build). clang-tidy looks at what a build with sanitizers compiles: at folders too.
# Included once all options of single files are set.

# Files that have options in common are compiled as one with these. Compiled alone are files with definitions of their own.
function(shardrec_compile_folders_as_one target)
  if(CMAKE_BUILD_TYPE STREQUAL Debug)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
    UNITY_BUILD_CODE_BEFORE_INCLUDE "// NOLINTNEXTLINE(bugprone-suspicious-include)")
  foreach(source IN LISTS ARGN)
    get_property(alone SOURCE ${source} PROPERTY SKIP_UNITY_BUILD_INCLUSION)
    get_property(options SOURCE ${source} PROPERTY COMPILE_OPTIONS)
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER ${folder} group)
    if(options AND NOT alone)
      # CMake leaves files with options out of what it compiles as one: they become options of the file that it writes.
      string(MD5 name "${options}")
      string(SUBSTRING ${name} 0 8 name)
      set(group ${group}_${name})
      set_property(SOURCE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/Unity/unity_${group}_cxx.cxx
        PROPERTY COMPILE_OPTIONS ${options})
      set_property(SOURCE ${source} PROPERTY COMPILE_OPTIONS)
    endif()
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${group})
  endforeach()
endfunction()

# Compiled alone are kernels, of which Highway reads some once per instruction set, and files that have names in common with
# neighbours in their anonymous namespaces, or members of types that are in these (of which gcc warns in what is included).
file(GLOB alone CONFIGURE_DEPENDS impl/compute/cpu/kernels/*.cpp impl/compute/probe/kernels.cpp impl/dense/kernels.cpp
  capi/src/mesh.cpp
  impl/checkpoint/read/saved.cpp
  impl/comm/collective/tensor_collectives.cpp
  impl/comm/remote/communicator.cpp
  impl/comm/remote/group_state.cpp
  impl/comm/remote/transport.cpp
  impl/comm/remote/waiting.cpp
  impl/compute/cpu/routing/routing_streams.cpp
  impl/compute/cpu/transfer/row_transfers.cpp
  impl/core/json.cpp
  impl/core/threads.cpp
  impl/dense/layers/mlp.cpp
  impl/dense/parameters.cpp
  impl/embedding/exchange/route.cpp)
set_property(SOURCE ${alone} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
shardrec_compile_folders_as_one(shardrec_impl ${impl_sources})
shardrec_compile_folders_as_one(shardrec_capi ${capi_sources})
