// Shapes and literals of modules in binary form.
#pragma once

#include <string>

#include "sim/base/expected.hpp"
#include "workloads/hlo/hlo_shape.hpp"

namespace podsim {

namespace xla {
class Literal;
class Shape;
}  // namespace xla

/// Errors: numbers of element types, dimensions and memory spaces that are none, more than 64 dimensions or tuples in each other.
Expected<HloShape> shape_of_proto(const xla::Shape& proto);

/// All values as XLA prints them; those of types below 16 bits that are no whole numbers, of tuples, and of more than 2^20 elements as {...}.
std::string literal_text(const xla::Literal& literal, const HloShape& shape);

}  // namespace podsim
