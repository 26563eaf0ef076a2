#include "sim/engine/numeric/transform_kernels.hpp"

#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <utility>

#include "sim/base/invariant.hpp"
#include "sim/engine/numeric/math_libraries.hpp"
#include "sim/engine/numeric/matrix_view.hpp"

namespace podsim {

namespace {

using Complex = fftwf_complex;  // float[2]

/// Plans for one line of adjacent values, out of place, on memory aligned as FFTW's own. Only fftwf_execute_dft() may be called in several threads; the
/// planner is one for the process, hence this object too.
class Planner {
 public:
  static Planner& instance() {
    static Planner planner;
    return planner;
  }

  fftwf_plan plan(int n, bool inverse) {
    const std::scoped_lock lock{mutex_};
    fftwf_plan& plan = plans_[{n, inverse}];
    if (plan != nullptr) return plan;
    math().fftwf_forget_wisdom();  // a plan must not depend on those made before
    Complex* const in = math().fftwf_alloc_complex(static_cast<std::size_t>(n));
    Complex* const out = math().fftwf_alloc_complex(static_cast<std::size_t>(n));
    plan = math().fftwf_plan_dft_1d(n, in, out, inverse ? FFTW_BACKWARD : FFTW_FORWARD, FFTW_ESTIMATE);  // nothing is measured
    math().fftwf_free(in), math().fftwf_free(out);
    PODSIM_ASSERT(plan != nullptr);
    return plan;
  }

 private:
  Planner() { static_cast<void>(math()); }  // so that FFTW outlives the plans
  ~Planner() {
    for (const auto& [shape, plan] : plans_) math().fftwf_destroy_plan(plan);
  }
  std::mutex mutex_;
  std::map<std::pair<int, bool>, fftwf_plan> plans_;
};

constexpr std::size_t line_alignment = 64;  // bytes, of lines

/// Aligned; every line begins so too if lines have a multiple of 8 values.
Complex* lines_in(std::vector<float>& room, std::int64_t values) {
  const std::int64_t slack = line_alignment / sizeof(float);
  const View view = room_for(2 * values + slack, room);
  const auto address = reinterpret_cast<std::uintptr_t>(view.data);
  return reinterpret_cast<Complex*>(view.data + (line_alignment - address % line_alignment) % line_alignment / sizeof(float));
}

/// Lines of a box along one dimension: where they begin, and how far apart their values are. In words.
struct Lines {
  Layout starts;
  std::int64_t step = 0, length = 0;
};
Lines lines_of(const View& view, int dim) {
  const auto along = static_cast<std::size_t>(dim);
  Lines lines{view.layout, view.layout.stride[along], view.layout.length[along]};
  Layout& starts = lines.starts;
  if (view.dtype == DType::c64) --starts.rank;
  for (BoxExtents* of_dims : {&starts.length, &starts.stride})
    std::copy(of_dims->begin() + dim + 1, of_dims->begin() + starts.rank, of_dims->begin() + dim);
  --starts.rank;
  return lines;
}

/// Calls move(line, index, offset) for the values of lines [first, first + count), in the order in which they lie closest to each other.
template <class Move>
void for_each_value(const Lines& lines, std::span<const std::int64_t> starts, Move move) {
  const auto count = static_cast<std::int64_t>(starts.size());
  const bool side_by_side = count > 1 && std::abs(starts[1] - starts[0]) < lines.step;
  if (side_by_side) {
    for (std::int64_t i = 0; i < lines.length; ++i)
      for (std::int64_t l = 0; l < count; ++l) move(l, i, starts[static_cast<std::size_t>(l)] + i * lines.step);
  } else {
    for (std::int64_t l = 0; l < count; ++l)
      for (std::int64_t i = 0; i < lines.length; ++i) move(l, i, starts[static_cast<std::size_t>(l)] + i * lines.step);
  }
}

}  // namespace

void fft(bool inverse, std::array<int, 2> dims, const View& x, const View& y, PackedOperands& workspace) {
  const Lines from = lines_of(x, dims[0]), to = lines_of(y, dims[1]);
  PODSIM_ASSERT(from.length == to.length && elements_of(from.starts) == elements_of(to.starts) && from.length <= std::numeric_limits<int>::max());
  const std::int64_t n = from.length, lines = elements_of(from.starts);
  const fftwf_plan plan = Planner::instance().plan(static_cast<int>(n), inverse);
  constexpr std::int64_t most_lines = 16, most_values = 1 << 14;  // at a time: in the cache
  const std::int64_t block = std::clamp<std::int64_t>(most_values / n, 1, most_lines), apart = (n + 7) / 8 * 8;
  Complex* const in = lines_in(workspace.left, block * apart);
  Complex* const out = lines_in(workspace.right, block * apart);
  const double divisor = inverse ? 1.0 / static_cast<double>(n) : 1.0;
  std::array<std::int64_t, most_lines> read{}, written{};
  for (std::int64_t first = 0; first < lines && !workspace.stop.requested(); first += block) {
    const std::int64_t count = std::min(block, lines - first);
    for (std::int64_t l = 0; l < count; ++l) {
      read[static_cast<std::size_t>(l)] = offset_of(from.starts, first + l);
      written[static_cast<std::size_t>(l)] = offset_of(to.starts, first + l);
    }
    const bool real = x.dtype != DType::c64;
    for_each_value(from, std::span{read}.first(static_cast<std::size_t>(count)), [&](std::int64_t l, std::int64_t i, std::int64_t at) {
      Complex& value = in[l * apart + i];
      value[0] = x.data[at];
      value[1] = real ? 0.0F : x.data[at + 1];
    });
    for (std::int64_t l = 0; l < count; ++l) math().fftwf_execute_dft(plan, in + l * apart, out + l * apart);
    for_each_value(to, std::span{written}.first(static_cast<std::size_t>(count)), [&](std::int64_t l, std::int64_t i, std::int64_t at) {
      const Complex& value = out[l * apart + i];
      y.data[at] = static_cast<float>(divisor * static_cast<double>(value[0]));
      y.data[at + 1] = static_cast<float>(divisor * static_cast<double>(value[1]));
    });
  }
}

void twiddle(double points, std::array<int, 2> dims, const RowNumbers& j, const RowNumbers& k, const View& x, const View& y) {
  const auto along_j = static_cast<std::size_t>(dims[0]), along_k = static_cast<std::size_t>(dims[1]);
  const auto n = static_cast<std::int64_t>(std::abs(points));
  const double turn = (points < 0 ? 2 : -2) * std::numbers::pi / static_cast<double>(n);
  View from = x, to = y;
  for (View* view : {&from, &to}) view->layout.length[along_j] = view->layout.length[along_k] = 1;
  for (std::int64_t a = 0; a < x.layout.length[along_j]; ++a)
    for (std::int64_t b = 0; b < x.layout.length[along_k]; ++b) {
      const auto place = [&](View& view, const View& whole) {
        view.layout.offset = whole.layout.offset + a * whole.layout.stride[along_j] + b * whole.layout.stride[along_k];
      };
      place(from, x), place(to, y);
      const auto product = (j.of(a) % n) * (k.of(b) % n) % n;
      const double angle = turn * static_cast<double>(product), cosine = std::cos(angle), sine = std::sin(angle);
      for_each_run<2>({&from.layout, &to.layout}, [&](std::int64_t count, const std::array<RunCursor, 2>& at) {
        for (std::int64_t i = 0; i < count; i += 2) {  // a complex number is never cut
          const float* value = from.data + at[0].offset() + i;
          const auto real = static_cast<double>(value[0]), imaginary = static_cast<double>(value[1]);
          float* const result = to.data + at[1].offset() + i;
          result[0] = static_cast<float>(real * cosine - imaginary * sine);
          result[1] = static_cast<float>(real * sine + imaginary * cosine);
        }
      });
    }
}

}  // namespace podsim
