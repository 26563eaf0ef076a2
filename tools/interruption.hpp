// Ctrl-C, SIGTERM and SIGHUP, as the program takes them.
#pragma once

#include "sim/base/cancellation.hpp"

namespace podsim::interruption {

/// From now on the first of these signals asks for an end with what is known so far: work that hears it ends by itself and says what it has. What has not
/// begun to answer within half a second is ended (status 130, no part files stay behind). A second signal ends it at once.
/// SIGTERM and SIGHUP are as Ctrl-C; SIGHUP stays ignored where it is (nohup). Calls that wait are not taken up again behind the signal, so that reading
/// from a pipe ends.
void handle_signals();

/// Whether a signal has come.
Cancellation requested();

/// What is known is being written. After a signal it is given four seconds more, as its reader may be slow; a signal that comes only now ends it at once.
void answering();

/// The user has been told of the end, and is not told again.
void announced();

}  // namespace podsim::interruption
