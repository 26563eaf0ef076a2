// Ctrl-C, SIGTERM and SIGHUP, as the program takes them.
#pragma once

#include <string>

#include "sim/base/cancellation.hpp"

namespace podsim::interruption {

/// From now on the first of these signals asks for an end with what is known so far: work that hears it ends by itself and says what it has. What has not
/// begun to answer within half a second is ended (status 130, no part files stay behind), with what known_so_far() has. A second signal ends it at once.
/// SIGTERM and SIGHUP are as Ctrl-C; SIGHUP stays ignored where it is (nohup). Calls that wait are not taken up again behind the signal, so that reading
/// from a pipe ends.
void handle_signals();

/// Whether a signal has come.
Cancellation requested();

/// What is known is being written. After a signal it is given four seconds more, as its reader may be slow; a signal that comes only now ends it at once.
void answering();

/// From now on this is printed, beside the end with the status of an interrupted program, where work does not hear the signal in time: the answer so far, on
/// standard output, and what is said of it on standard error. The last one counts. By one thread at a time.
void known_so_far(std::string out, std::string err);

/// The user has been told of the end, and is not told again.
void announced();

}  // namespace podsim::interruption
