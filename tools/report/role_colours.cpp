#include "tools/report/role_colours.hpp"

#include <algorithm>
#include <array>

namespace podsim {

namespace {

// Of Okabe and Ito.
constexpr Colour blue{0x00, 0x72, 0xb2}, sky{0x56, 0xb4, 0xe9}, green{0x00, 0x9e, 0x73}, yellow{0xf0, 0xe4, 0x42}, orange{0xe6, 0x9f, 0x00}, vermillion{0xd5, 0x5e, 0x00},
    purple{0xcc, 0x79, 0xa7};
// What a drawing shows beside them, chosen by a search for the largest least distance in CIELAB as seen with and without red-green colour blindness.
constexpr Colour navy{0x00, 0x43, 0xa0}, mint{0x56, 0xd4, 0x98}, teal{0x0d, 0x86, 0x84}, azure{0x1f, 0xa8, 0xf0}, plum{0x4b, 0x24, 0x71}, lavender{0xd9, 0xcb, 0xf1};
constexpr Colour brick{0xb0, 0x2a, 0x0c}, maroon{0x7a, 0x2a, 0x12}, apricot{0xfc, 0xc2, 0x71}, olive{0xab, 0x9a, 0x39}, cream{0xfe, 0xfd, 0xb0}, brown{0x9a, 0x52, 0x3e},
    peach{0xf5, 0xc9, 0xa3};
constexpr Colour pale{0xdc, 0xdc, 0xdc}, light{0xb7, 0xb7, 0xb7}, medium{0x72, 0x72, 0x72}, dark{0x64, 0x64, 0x64}, darkest{0x48, 0x48, 0x48};

constexpr std::array all_roles{
    // Work of a device: all of it, then its parts.
    RoleColour{"compute", blue}, RoleColour{"matmul", navy}, RoleColour{"attention", sky}, RoleColour{"elementwise", green}, RoleColour{"copy", mint}, RoleColour{"copies", mint},
    RoleColour{"recompute", azure}, RoleColour{"optimizer", purple}, RoleColour{"optimiser", purple}, RoleColour{"experts", plum}, RoleColour{"loss", lavender},
    RoleColour{"fft", teal}, RoleColour{"factorisation", {0x29, 0x2c, 0xd9}}, RoleColour{"opaque", {0x47, 0x4f, 0x72}}, RoleColour{"call", {0x4d, 0x75, 0xeb}},
    // Passes of a training step.
    RoleColour{"forward", {0x9d, 0xbf, 0xdc}}, RoleColour{"backward", {0x6f, 0xc3, 0x79}}, RoleColour{"backward of inputs", {0xc9, 0xd9, 0x5b}},
    RoleColour{"backward of weights", {0x7d, 0x73, 0xcf}},
    // Communication: all of it, what the core waits for, what is in flight beside its work; then its kinds.
    RoleColour{"communication", vermillion}, RoleColour{"exposed", vermillion}, RoleColour{"exposed communication", vermillion}, RoleColour{"hidden", peach},
    RoleColour{"all-gather", orange}, RoleColour{"reduce-scatter", yellow}, RoleColour{"all-reduce", brick}, RoleColour{"all-to-all", maroon}, RoleColour{"permute", apricot},
    RoleColour{"broadcast", olive}, RoleColour{"reduce", cream}, RoleColour{"send", brown},
    // No work.
    RoleColour{"bubble", pale}, RoleColour{"waiting", dark}, RoleColour{"launch", darkest}, RoleColour{"launches", darkest}, RoleColour{"other", light},
    // The critical path has these too.
    RoleColour{"host", mint}, RoleColour{"memory", sky}, RoleColour{"core share", apricot}, RoleColour{"own block", teal}, RoleColour{"per message", yellow},
    RoleColour{"latency", orange}, RoleColour{"bandwidth", vermillion}, RoleColour{"sharing", maroon}, RoleColour{"reduction", green},
    // Memory: of a training step, then of other runs by what writes it.
    RoleColour{"weights", sky}, RoleColour{"gradients", orange}, RoleColour{"activations", green}, RoleColour{"working", dark}, RoleColour{"inputs", sky},
    RoleColour{"outputs", green}, RoleColour{"received", vermillion}, RoleColour{"products", navy}, RoleColour{"copies and elementwise", mint}, RoleColour{"functions", lavender}};

constexpr std::array of_axes{vermillion, orange, yellow, brick, apricot, maroon, olive, brown};
constexpr std::array of_series{blue, vermillion, green, purple, sky, orange, medium};  // without yellow, which is too light on white

}  // namespace

std::span<const RoleColour> role_colours() { return all_roles; }

Colour colour_of_role(std::string_view role) {
  const auto found = std::ranges::find(all_roles, role, &RoleColour::role);
  return found == all_roles.end() ? light : found->colour;
}

std::span<const Colour> axis_colours() { return of_axes; }
std::span<const Colour> series_colours() { return of_series; }

}  // namespace podsim
