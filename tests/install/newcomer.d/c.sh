# C and C++ through pkg-config. Read by newcomer, with its functions and variables.
# shellcheck shell=bash disable=SC2154

language_c() {
  install gcc libc6-dev pkg-config && copy_in examples/c &&
    inside 'cd examples/c
      for program in first processes ddp; do
        cc -std=c99 -Wall -Wextra -Werror -O2 $program.c -o $program $(pkg-config --cflags --libs shardrec) -pthread -lm
      done
      timeout -v 300 ./first; timeout -v 300 ./ddp' &&
    two_processes examples/c/processes
}

language_cpp() {
  install g++ cmake make pkg-config && copy_in examples/cpp &&
    inside 'cd examples/cpp
      for program in *.cpp; do
        c++ -std=c++20 -Wall -Wextra -Werror -O2 $program -o ${program%.cpp} $(pkg-config --cflags --libs shardrec) -pthread
      done
      timeout -v 300 ./first' &&
    two_processes examples/cpp/processes && dlrm examples/cpp/dlrm
}
