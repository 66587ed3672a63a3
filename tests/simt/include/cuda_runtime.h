// Stands in for CUDA's header where CUDA sources are compiled for the CPU (tests/simt): found before
// it, it has of the language and of the runtime what the sources here use. What is missing does not
// compile: float atomics, static shared memory, waits for a whole device.
#pragma once

#include "simt.h"
#include "simt/arithmetic.h"
#include "simt/atomics.h"
#include "simt/language.h"
#include "simt/runtime.h"
#include "simt/warp.h"
