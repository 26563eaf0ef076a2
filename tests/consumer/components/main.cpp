// A program that needs schedules and nothing that runs them.
#include "sim/schedule/text.hpp"

int main() { return podsim::to_text(podsim::Schedule{}).empty() ? 1 : 0; }
