// Ctrl-C, SIGTERM and SIGHUP, as the program takes them.
#pragma once

#include "sim/base/cancellation.hpp"

namespace podsim::interruption {

/// From now on the first of these signals asks for an end with what is known so far: work that hears it ends by itself and says what it has. What has not
/// begun to answer half a second later is ended (status 130, no part files stay behind), as it is at once by a second signal.
/// SIGTERM and SIGHUP are as Ctrl-C; SIGHUP stays ignored where it is (nohup). Calls that wait are not taken up again behind the signal, so that reading
/// from a pipe ends.
void handle_signals();

/// Whether a signal has come.
Cancellation requested();

/// What is known is being written: it takes the time that it needs.
void answering();

}  // namespace podsim::interruption
