# The compiler of the CUDA plug-in, and a rule for each .cu file. CMake's own language CUDA is not used:
# - in CMake 3.25 it knows no C++20 (it takes 17 without a word);
# - a toolkit that cannot be used with this host compiler, or that was removed since, ends the configuration, where
#   the plug-in is only to be left out;
# - its rules pass on flags that are for the host compiler alone.
# So nvcc makes object files by commands of ours, and the host's linker makes the plug-in of them as of any others.
set(SHARDREC_CUDA AUTO CACHE STRING "Build the CUDA plug-in: AUTO (where a toolkit is found), ON or OFF")
set_property(CACHE SHARDREC_CUDA PROPERTY STRINGS AUTO ON OFF)
set(SHARDREC_CUDA_TOOLKIT "" CACHE PATH
  "Folder of the CUDA toolkit (else CUDA_HOME, nvcc in PATH, and what .ci/cuda_tools installed)")
set(SHARDREC_CUDA_ARCHITECTURES "" CACHE STRING
  "Compute capabilities that the CUDA plug-in has code for, and PTX of the last for newer ones (80;90;100)")
option(SHARDREC_CUDA_LINEINFO "Record source lines in the CUDA plug-in's kernels, for profilers" OFF)
mark_as_advanced(SHARDREC_CUDA_LINEINFO)

set(cuda_oldest 12.4)

# Sets cuda_nvcc to the compiler and cuda_version to its version (major.minor), or cuda_missing to why there is none.
function(shardrec_find_cuda)
  set(candidates "")
  if(SHARDREC_CUDA_TOOLKIT)  # no other then
    set(candidates ${SHARDREC_CUDA_TOOLKIT}/bin/nvcc)
  else()
    if(DEFINED ENV{CUDA_HOME})
      list(APPEND candidates $ENV{CUDA_HOME}/bin/nvcc)
    endif()
    find_program(in_path nvcc NO_CACHE)
    if(in_path)
      file(REAL_PATH ${in_path} not_by_link)  # a compiler called by a link does not find the rest of its toolkit
      list(APPEND candidates ${in_path} ${not_by_link})
    endif()
    list(APPEND candidates ${PROJECT_SOURCE_DIR}/build/cuda/toolkit/bin/nvcc)
  endif()
  set(reason "no CUDA toolkit was found (install one, or run .ci/cuda_tools)")
  foreach(nvcc IN LISTS candidates)
    if(NOT EXISTS ${nvcc})
      if(SHARDREC_CUDA_TOOLKIT)
        set(reason "SHARDREC_CUDA_TOOLKIT is ${SHARDREC_CUDA_TOOLKIT}, which has no bin/nvcc")
      endif()
      continue()
    endif()
    execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE about ERROR_VARIABLE about RESULT_VARIABLE status)
    if(NOT status EQUAL 0 OR NOT about MATCHES "release ([0-9]+\\.[0-9]+)")
      set(reason "${nvcc} does not run")
      continue()
    endif()
    set(version ${CMAKE_MATCH_1})
    if(version VERSION_LESS cuda_oldest)
      set(reason "${nvcc} is of CUDA ${version}, and ${cuda_oldest} is the oldest that can be used")
      continue()
    endif()
    # Its headers refuse host compilers that they do not know.
    set(trial ${CMAKE_CURRENT_BINARY_DIR}/trial.cu)
    file(WRITE ${trial} "#include <cuda_fp16.h>\n#include <concepts>\n__global__ void trial(float* x) { *x = 0; }\n")
    execute_process(COMMAND ${nvcc} -std=c++20 -ccbin ${CMAKE_CXX_COMPILER} -c ${trial} -o ${trial}.o
      OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
    if(status EQUAL 0)
      set(cuda_nvcc ${nvcc} PARENT_SCOPE)
      set(cuda_version ${version} PARENT_SCOPE)
      set(cuda_missing "" PARENT_SCOPE)
      return()
    endif()
    string(STRIP "${output}" output)
    string(REGEX REPLACE "\n.*" "" output "${output}")
    set(reason "${nvcc} does not compile with ${CMAKE_CXX_COMPILER} (${output})")
  endforeach()
  set(cuda_missing "${reason}" PARENT_SCOPE)
endfunction()

# Writes what a HEADER of the toolkit in the folder TOP begins with, its licence, into NAME.copyright in the build;
# nothing where the toolkit has no such header.
function(shardrec_header_licence top name header)
  find_file(found ${header} NO_CACHE NO_DEFAULT_PATH PATHS ${top} ${top}/targets/${CMAKE_SYSTEM_PROCESSOR}-linux
    PATH_SUFFIXES include/cccl include)
  set(text "")
  if(found)
    file(READ ${found} text LIMIT 8192)
    string(FIND "${text}" "*/" end)
    string(SUBSTRING "${text}" 0 ${end} text)
    string(REGEX REPLACE "\n \\*+ ?" "\n" text "${text}")
    string(REGEX REPLACE "^/\\*+\n" "" text "${text}")
  endif()
  file(WRITE ${PROJECT_BINARY_DIR}/${name}.copyright "${text}")
endfunction()

# Sets VARIABLE to the static run-time library of the toolkit of NVCC, and cuda_licences to those of what a plug-in holds
# of it; or cuda_missing.
function(shardrec_find_cudart nvcc variable)
  execute_process(COMMAND ${nvcc} --dryrun -x cu -c /dev/null -o /dev/null ERROR_VARIABLE commands OUTPUT_QUIET)
  string(REGEX MATCH "TOP=([^\n]+)" top "${commands}")
  file(REAL_PATH "${CMAKE_MATCH_1}" top)
  find_library(cudart libcudart_static.a NO_CACHE NO_DEFAULT_PATH
    PATHS ${top} PATH_SUFFIXES lib64 lib targets/${CMAKE_SYSTEM_PROCESSOR}-linux/lib)
  find_library(cudart libcudart_static.a NO_CACHE)  # a distribution's package
  set(${variable} ${cudart} PARENT_SCOPE)
  if(NOT cudart)
    set(cuda_missing "${top} has no libcudart_static.a" PARENT_SCOPE)
  endif()
  set(eula ${top}/EULA.txt)
  if(NOT EXISTS ${eula})  # NVIDIA's packages for Debian may have it elsewhere
    string(REPLACE . - version ${cuda_version})
    find_file(eula_of_package copyright NO_CACHE NO_DEFAULT_PATH PATHS /usr/share/doc/cuda-cudart-dev-${version})
    if(eula_of_package)
      set(eula ${eula_of_package})
    endif()
  endif()
  if(EXISTS ${eula})
    file(REAL_PATH ${eula} eula)  # a link would be installed as one
  endif()
  shardrec_header_licence(${top} cub cub/cub.cuh)
  shardrec_header_licence(${top} nvtx nvtx3/nvToolsExt.h)
  set(cuda_licences cuda:${eula} cub:${PROJECT_BINARY_DIR}/cub.copyright nvtx:${PROJECT_BINARY_DIR}/nvtx.copyright
    CACHE INTERNAL "Read by cmake/licences.cmake")
endfunction()

# Sets VARIABLE to the options that make code for the ARCHITECTURES, and PTX of the last of them: a driver compiles
# it for devices that are newer than all. (Code for 8.0 runs on all 8.x.)
function(shardrec_cuda_code architectures variable)
  set(options "")
  list(GET architectures -1 last)
  foreach(architecture IN LISTS architectures)
    set(code sm_${architecture})
    if(architecture EQUAL last)
      string(APPEND code ",compute_${architecture}")
    endif()
    list(APPEND options "--generate-code=arch=compute_${architecture},code=[${code}]")
  endforeach()
  set(${variable} ${options} PARENT_SCOPE)
endfunction()

# Sets VARIABLE to the object files of the SOURCES, compiled with the OPTIONS; adds their rules. A folder's sources are
# compiled as one: half of what a file costs is reading CUDA's headers, which nvcc does four times. A launcher of the C++
# compiler, such as ccache, launches this one too.
function(shardrec_cuda_objects variable sources options)
  set(launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
  if(DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
    set(launcher ${CMAKE_CUDA_COMPILER_LAUNCHER})
  endif()
  execute_process(COMMAND ${cuda_nvcc} --help OUTPUT_VARIABLE help ERROR_QUIET)
  set(folders "")
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/impl ${source})
    cmake_path(GET folder FILENAME name)
    list(APPEND folders ${folder})
    list(APPEND sources_of_${name} ${source})
    string(APPEND includes_of_${name} "#include \"${path}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set(objects "")
  foreach(folder IN LISTS folders)
    cmake_path(GET folder FILENAME name)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu)
    file(CONFIGURE OUTPUT ${source} CONTENT "${includes_of_${name}}")
    # Names of what is local to a file hold a hash of where it lies, and a random number: both would make two builds
    # differ. They are made of the folder's path within the project instead, where the compiler can do that.
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${folder})
    set(names "")
    if(help MATCHES "--frandom-seed")
      set(names --frandom-seed=${path} -Xcudafe=--orig_src_path_name=${path})
    endif()
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${launcher} ${cuda_nvcc} ${options} ${names} -MD -MT ${name}.o -MF ${name}.o.d -c ${name}.cu -o ${name}.o
      MAIN_DEPENDENCY ${source} DEPFILE ${object}.d
      DEPENDS ${cuda_nvcc} ${sources_of_${name}}
      COMMENT "Building CUDA object ${name}.o" VERBATIM COMMAND_EXPAND_LISTS)
    list(APPEND objects ${object})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
