// Ctrl-C: the first one asks for an orderly end, which long loops look for; the second one ends the
// process at once.
#pragma once

namespace shardrec::cli {

inline constexpr int kInterruptedExit = 130;

void handle_interrupts();
bool interrupted();  // any thread

}  // namespace shardrec::cli
