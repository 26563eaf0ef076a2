#include "algorithms/fft/passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace podsim {

namespace {

std::int64_t elements_before(const Extents& extents, int dim) {
  return std::accumulate(extents.begin(), extents.begin() + dim, std::int64_t{1}, std::multiplies{});
}

/// Writes the passes of one problem, with the block's extents as they change.
class Passes {
 public:
  Passes(const FftProblem& problem, const Mesh& mesh) : problem_{problem}, mesh_{mesh} {
    out_.multiples.assign(problem.extents.size(), 1);
    out_.result.view = problem.extents;
  }

  FftPasses several_dimensions() {
    const int last = static_cast<int>(problem_.extents.size()) - 1;
    sharding_.resize(problem_.extents.size());
    for (int d = 0; d <= last; ++d) {
      sharding_[index(d)] = dividing_axes(problem_, index(d));
      block_.push_back(problem_.extents[index(d)] / devices_along(sharding_[index(d)]));
      needs(d, devices_along(sharding_[index(d)]));
    }
    const bool transposed = problem_.order == FftOrder::transposed && last > 0;
    if (transposed && problem_.inverse) return back_from_transposed(last);
    int cut = -1;
    for (int d = last; d > 0; --d) {
      const std::vector<AxisView> axes = sharding_[index(d - 1)];
      const int before = cut;
      cut = axes.empty() ? -1 : cut_for(d, d - 1);
      transform(d, d, axes.empty() && before != d ? before : cut);
      if (!axes.empty()) exchange(axes, d, d - 1, cut);
    }
    // The last FFT goes with the way back, or else with the last all-to-all.
    const std::vector<AxisView> back = last > 0 ? sharding_[1] : std::vector<AxisView>{};
    transform(0, transposed ? last : 0, !transposed && !back.empty() ? cut_for(0, 1) : cut > 0 ? cut : -1);
    for (int d = 0; !transposed && d < last; ++d)
      if (const std::vector<AxisView> axes = sharding_[index(d + 1)]; !axes.empty()) exchange(axes, d, d + 1, cut_for(d, d + 1));
    FftResult& result = out_.result;
    result.permutation.resize(problem_.extents.size());
    std::iota(result.permutation.begin(), result.permutation.end(), 0);
    if (transposed) std::rotate(result.permutation.begin(), result.permutation.begin() + 1, result.permutation.end());
    for (const int d : result.permutation) result.extents.push_back(problem_.extents[index(d)]);
    for (int d = 0; d <= last; ++d) result.sharding.push_back(dividing_axes(problem_, index(d)));
    return std::move(out_);
  }

  /// The forward passes in reverse: the first FFT moves the last dimension to the front, where it was before it was transposed.
  FftPasses back_from_transposed(int last) {
    std::rotate(sharding_.begin(), sharding_.end() - 1, sharding_.end());
    moved_ = last;
    int cut = -1;
    for (int d = 0; d < last; ++d) {
      const std::vector<AxisView> axes = sharding_[index(d + 1)];
      const int before = cut;
      cut = axes.empty() ? -1 : cut_for(d, d + 1);
      if (d == 0)
        transform(last, 0, cut < 0 ? -1 : cut - 1);
      else
        transform(d, d, axes.empty() && before != d ? before : cut);
      if (!axes.empty()) exchange(axes, d, d + 1, cut);
    }
    transform(last, last, cut != last ? cut : -1);
    FftResult& result = out_.result;
    for (int d = 0; d <= last; ++d) {
      result.permutation.push_back((d + last) % (last + 1));
      result.extents.push_back(problem_.extents[index(result.permutation.back())]);
      result.sharding.push_back(dividing_axes(problem_, index(d)));
    }
    return std::move(out_);
  }

  /// x[j1 n2 + j2] as a matrix, whose rows are divided. FFTs of columns give index k1, twiddle factors follow, and FFTs of rows give k2.
  FftPasses four_step() {
    const std::vector<AxisView> axes = dividing_axes(problem_, 0);
    const std::int64_t n = problem_.extents[0], P = devices_along(axes), C = problem_.chunks;
    const bool natural = problem_.order == FftOrder::natural, chunks = C > 1 && P > 1;
    const std::int64_t of_rows = P * (chunks && natural ? C : 1), of_columns = P * (chunks ? C : 1);
    needs(0, of_rows * of_columns);
    const std::int64_t n1 = of_rows * nearest_divisor(n / of_rows / of_columns, of_columns, of_rows), n2 = n / n1;
    const std::int64_t a = n1 / P, c = n2 / P;
    const int cut = chunks ? 2 : -1;
    block_ = {n / P};
    view({a, P, c});
    if (P > 1) exchange(axes, 1, 0, cut);
    transform(0, 0, cut);
    add({.kind = FftPass::Kind::twiddle, .axes = axes, .from = 0, .to = 2, .result = block_, .cut = cut, .cut_after = cut, .label = "twiddle"});
    if (P > 1) exchange(axes, 0, 1, cut);
    view({a, n2});
    transform(1, natural ? 0 : 1, natural && chunks ? 0 : -1);
    if (natural) {
      if (P > 1) exchange(axes, 0, 1, chunks ? 1 : -1);
      view({n / P});
    }
    if (natural)
      out_.result = {{n}, {axes}, {n}, {0}};
    else
      out_.result = {{n1, n2}, {axes, {}}, {n2, n1}, {1, 0}};
    return std::move(out_);
  }

 private:
  static std::size_t index(int d) { return static_cast<std::size_t>(d); }

  /// Extent number `dim` of what is there now must be a multiple of `of`.
  void needs(int dim, std::int64_t of) {
    std::int64_t& multiple = out_.multiples[(index(dim) + index(moved_)) % out_.multiples.size()];
    multiple = std::lcm(multiple, of);
  }

  /// The divisor r of m for which r rows of `rows` and m/r columns of `columns` are as square as can be.
  static std::int64_t nearest_divisor(std::int64_t m, std::int64_t columns, std::int64_t rows) {
    if (m < 1) return 1;
    const double ideal = std::sqrt(static_cast<double>(m) * static_cast<double>(columns) / static_cast<double>(rows));
    const auto aspect = [&](std::int64_t r) { return std::abs(std::log(static_cast<double>(r) / ideal)); };
    std::int64_t best = 1;
    for (std::int64_t r = 1; r * r <= m; ++r)
      if (m % r == 0)
        for (const std::int64_t divisor : {r, m / r})
          if (aspect(divisor) < aspect(best)) best = divisor;
    return best;
  }

  /// The dimension that chunks of an all-to-all from dimension `split` to `joined` divide: the first that it leaves alone, else the one that it puts
  /// together. -1: there is one chunk.
  int cut_for(int split, int joined) {
    if (problem_.chunks == 1) return -1;
    int cut = joined;
    for (int d = static_cast<int>(block_.size()) - 1; d >= 0; --d)
      if (d != split && d != joined) cut = d;
    needs(cut, devices_along(sharding_[index(cut)]) * problem_.chunks);
    return cut;
  }

  void add(FftPass pass) {
    block_ = pass.result;
    out_.passes.push_back(std::move(pass));
  }

  /// The same memory in other extents.
  void view(Extents extents) {
    if (!out_.passes.empty() && out_.passes.back().kind == FftPass::Kind::view) out_.passes.pop_back();
    add({.kind = FftPass::Kind::view, .result = std::move(extents), .label = "view"});
  }

  void transform(int from, int to, int cut) {
    Extents result = block_;
    const std::int64_t n = result[index(from)];
    result.erase(result.begin() + from);
    result.insert(result.begin() + to, n);
    const int without = cut > from ? cut - 1 : cut;
    const int cut_after = cut < 0 ? -1 : without >= to ? without + 1 : without;
    add({.kind = FftPass::Kind::transform, .from = from, .to = to, .result = std::move(result), .cut = cut, .cut_after = cut_after,
         .label = fmt::format("{} along {}", problem_.inverse ? "ifft" : "fft", from)});
  }

  /// All-to-all that splits one dimension and puts another one together, with the copies around it. A chunk of the dimension that is put together arrives as
  /// part of each device's block, [.., devices, block, ..].
  void exchange(const std::vector<AxisView>& axes, int split, int joined, int cut) {
    const std::int64_t P = devices_along(axes);
    const std::string along = names_of(axes, mesh_);
    if (!sharding_.empty()) {
      needs(split, P);
      std::swap(sharding_[index(split)], sharding_[index(joined)]);
    }
    Extents sent = block_;
    sent[index(split)] /= P;
    Extents merged = sent;
    merged[index(joined)] *= P;
    const auto apart = [P](Extents extents) {
      extents.insert(extents.begin(), P);
      return extents;
    };
    int from = split, cut_sent = cut;
    if (problem_.slice_copies && elements_before(block_, split) > 1) {
      cut_sent = cut < 0 ? -1 : cut + 1;
      add({.kind = FftPass::Kind::pack, .from = split, .to = 0, .result = apart(sent), .cut = cut, .cut_after = cut_sent, .label = "pack for " + along});
      from = 0;
    }
    const bool in_blocks = cut == joined;
    if (in_blocks) sent.insert(sent.begin() + joined, 1), ++cut;
    Extents received = sent;
    received[index(joined)] *= P;
    const bool unpacks = problem_.slice_copies && elements_before(received, joined) > 1;
    const int cut_received = cut < 0 ? -1 : unpacks ? cut + 1 : cut;
    add({.kind = FftPass::Kind::exchange, .axes = axes, .from = from, .to = unpacks ? 0 : joined, .result = unpacks ? apart(sent) : received,
         .cut = cut_sent, .cut_after = cut_received, .label = "all-to-all along " + along});
    if (unpacks)
      add({.kind = FftPass::Kind::unpack, .from = 0, .to = joined, .result = received, .cut = cut_received, .cut_after = cut, .label = "unpack from " + along});
    if (in_blocks) view(std::move(merged));
  }

  const FftProblem& problem_;
  const Mesh& mesh_;
  std::vector<std::vector<AxisView>> sharding_;  // now, per dimension; not of four steps
  Extents block_;                                // now
  int moved_ = 0;                                // dimension d is number d + moved_ of the array, cyclic
  FftPasses out_;
};

}  // namespace

std::vector<AxisView> dividing_axes(const FftProblem& problem, std::size_t dimension) {
  std::vector<AxisView> axes;
  if (dimension < problem.sharding.size())
    for (const AxisView& axis : problem.sharding[dimension])
      if (axis.size > 1) axes.push_back(axis);
  return axes;
}

std::string names_of(const std::vector<AxisView>& axes, const Mesh& mesh) {
  std::string names;
  for (const AxisView& axis : axes) names += (names.empty() ? "" : "+") + mesh.name(axis);
  return names;
}

FftPasses fft_passes(FftMethod method, const FftProblem& problem, const Mesh& mesh) {
  Passes passes{problem, mesh};
  return method == FftMethod::four_step ? passes.four_step() : passes.several_dimensions();
}

}  // namespace podsim
