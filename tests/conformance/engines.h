// The engines that need nothing but this process: `local`, and what the engines between processes
// are made of, over links in memory.
#pragma once

#include "conformance/engine.h"

namespace shardrec::comm {

const Engine* local_engine();
const Engine* eager_engine();       // a message is gone when it is posted
const Engine* rendezvous_engine();  // it waits for its receiver
const Engine* slow_engine();        // and takes its time, so that messages overtake each other

}  // namespace shardrec::comm
