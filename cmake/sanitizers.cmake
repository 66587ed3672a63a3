# What builds with sanitizers (SHARDREC_SANITIZE) and fuzz targets (SHARDREC_FUZZ) differ in. Included once the library's
# own sources are known.
if(SHARDREC_SANITIZE)
  target_compile_options(shardrec_flags INTERFACE
    -fsanitize=${SHARDREC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(shardrec_flags INTERFACE -fsanitize=${SHARDREC_SANITIZE})
endif()

# Checks of each pointer that is used take most of the time of a build with sanitizers; the address
# sanitizer looks at what they point to. The library has them all but for its vector kernels, which
# load and store by unaligned instructions what the scalar kernels, which have them, do one by one.
set(without_pointer_checks "")
if(SHARDREC_SANITIZE MATCHES undefined)
  set(without_pointer_checks -fno-sanitize=alignment,null,object-size,pointer-overflow,vptr)
  file(GLOB simd_sources impl/compute/cpu/kernels/simd*.cpp)
  set_property(SOURCE ${simd_sources} PROPERTY COMPILE_OPTIONS
    ${without_pointer_checks} -mllvm -asan-instrumentation-with-call-threshold=0)
endif()
set(fuzzing_coverage "")  # of the library's targets
if(SHARDREC_FUZZ)
  # What the fuzzer learns from: edges everywhere but in the kernels, where they would cost most
  # (uncovered_by_fuzzing.txt), and comparisons where bytes of others are parsed.
  set(fuzzing_coverage -fsanitize-coverage=inline-8bit-counters,pc-table
    -fsanitize-coverage-ignorelist=${CMAKE_CURRENT_LIST_DIR}/uncovered_by_fuzzing.txt)
  target_compile_options(shardrec_impl PRIVATE ${fuzzing_coverage})
  file(GLOB_RECURSE parsed_sources impl/comm/*.cpp impl/core/*.cpp)
  set_property(SOURCE ${parsed_sources} APPEND PROPERTY COMPILE_OPTIONS -fsanitize-coverage=trace-cmp)
endif()

# oneTBB is not instrumented: the one file that includes it tells the thread sanitizer of fork and
# join itself, and is built without it.
if(SHARDREC_SANITIZE MATCHES thread)
  set_source_files_properties(impl/core/threads.cpp PROPERTIES
    COMPILE_OPTIONS -fno-sanitize=thread COMPILE_DEFINITIONS SHARDREC_THREAD_SANITIZER)
endif()
