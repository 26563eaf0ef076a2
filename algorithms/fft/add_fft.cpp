// Writes the passes of a distributed FFT, and the naive one, as tasks.
//
// A pass in chunks is a task per chunk. Passes that cut the same dimension follow each other chunk by chunk, up to an all-to-all: then come the other chunks,
// because the core works in program order, and what waits for the all-to-all would hold them up.
#include <fmt/format.h>

#include "algorithms/fft/passes.hpp"
#include "sim/base/invariant.hpp"

namespace podsim {

namespace {

using Kind = FftPass::Kind;

Local transform_of(const FftProblem& problem, const Region& from, const Region& to, int from_dim, int to_dim) {
  return {.kind = problem.inverse ? LocalKind::ifft : LocalKind::fft, .reads = {from}, .writes = {to}, .dims = {from_dim, to_dim}};
}

/// `length` elements of a range from number `begin` on.
Range part(const Range& range, std::int64_t begin, std::int64_t length) {
  Range result = range;
  result.offset += begin;
  result.length = length;
  return result;
}

Region chunk_of(const Region& region, int dim, std::int64_t chunk, std::int64_t chunks) {
  if (dim < 0) return region;
  const Range& range = region.dims[static_cast<std::size_t>(dim)];
  const std::int64_t length = range.length / chunks;
  return with(region, static_cast<std::size_t>(dim), part(range, chunk * length, length));
}

class PassWriter {
 public:
  PassWriter(ProgramBuilder& builder, const FftProblem& problem, const std::vector<FftPass>& passes)
      : builder_{builder}, problem_{problem}, passes_{passes}, done_(passes.size()) {}

  Tasks write(const Region& x, const Region& y, const Tasks& after) {
    place(x, y);
    after_ = after;
    for (std::size_t first = 0; first < passes_.size();) {
      std::size_t last = first;
      while (last + 1 < passes_.size() && passes_[last].kind != Kind::exchange && follows_by_chunk(last + 1)) ++last;
      const std::int64_t chunks = passes_[first].cut < 0 ? 1 : problem_.chunks;
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
        for (std::size_t p = first; p <= last; ++p) done_[p].push_back(builder_.add(label(p, chunk), op(p, chunk), predecessors(p, chunk)));
      first = last + 1;
    }
    return done_.back();
  }

 private:
  [[nodiscard]] bool follows_by_chunk(std::size_t p) const { return passes_[p].cut >= 0 && passes_[p].cut == passes_[p - 1].cut_after; }

  /// Chooses what each pass reads and writes. The last writes y; one that may work in place does; others write what a later pass writes anyway, if they may,
  /// and else scratch.
  void place(const Region& x, const Region& y) {
    std::vector<DType> dtypes;  // of what each pass reads
    DType dtype = problem_.input;
    for (const FftPass& pass : passes_) {
      dtypes.push_back(dtype);
      if (pass.kind == Kind::transform) dtype = DType::c64;
    }
    regions_.resize(passes_.size() + 1);
    regions_.back() = y;
    for (std::size_t p = passes_.size(); p-- > 1;) {
      const FftPass& pass = passes_[p];
      const bool in_place = (pass.kind == Kind::transform && pass.from == pass.to) || pass.kind == Kind::twiddle;
      if (in_place && dtypes[p] == DType::c64)
        regions_[p] = regions_[p + 1];
      else
        regions_[p] = written_later(p, dtypes[p]).value_or(Region{});
      if (regions_[p].dims.empty()) regions_[p] = builder_.scratch(passes_[p - 1].label, passes_[p - 1].result, dtypes[p]);
    }
    regions_[0] = x;
  }

  /// What pass p reads may be where a pass q behind it writes if both have the same shape and every chunk of p is over before any of q begins: some pass
  /// after p, or q itself, waits for all chunks.
  [[nodiscard]] std::optional<Region> written_later(std::size_t p, DType dtype) const {
    bool waits = false;
    for (std::size_t q = p + 1; q < passes_.size(); ++q) {
      waits = waits || !follows_by_chunk(q);
      const Region& later = regions_[q + 1];
      if (lengths_of(later) != passes_[p - 1].result || builder_.buffer(later.buffer).dtype != dtype) continue;
      return waits ? std::optional{later} : std::nullopt;  // what is written there first decides
    }
    return std::nullopt;
  }

  [[nodiscard]] std::string label(std::size_t p, std::int64_t chunk) const {
    return passes_[p].cut < 0 ? passes_[p].label : fmt::format("{} s{}", passes_[p].label, chunk);
  }

  Tasks predecessors(std::size_t p, std::int64_t chunk) {
    if (p == 0) return after_;
    if (follows_by_chunk(p)) return {done_[p - 1][static_cast<std::size_t>(chunk)]};
    // Every chunk of one pass before every chunk of the next.
    Tasks& before = done_[p - 1];
    if (before.size() > 1 && passes_[p].cut >= 0) before = {builder_.add("join", Local{LocalKind::join, {}, {}, 1, Unit::dma}, before)};
    return before;
  }

  [[nodiscard]] Op op(std::size_t p, std::int64_t chunk) const {
    const FftPass& pass = passes_[p];
    const Region from = chunk_of(regions_[p], pass.cut, chunk, problem_.chunks), to = chunk_of(regions_[p + 1], pass.cut_after, chunk, problem_.chunks);
    switch (pass.kind) {
      case Kind::view: return Local{.kind = LocalKind::alias, .reads = {from}, .writes = {to}};
      case Kind::transform: return transform_of(problem_, from, to, pass.from, pass.to);
      case Kind::pack: return Local{.kind = LocalKind::pack_blocks, .reads = {from}, .writes = {to}, .dims = {pass.from, pass.to}};
      case Kind::unpack: return Local{.kind = LocalKind::unpack_blocks, .reads = {from}, .writes = {to}, .dims = {pass.from, pass.to}};
      case Kind::twiddle: return twiddle(pass, from, to, chunk);
      case Kind::exchange: break;
    }
    return Collective{CollectiveKind::all_to_all, pass.axes, from, to, pass.to, pass.from, 0, {}};
  }

  /// exp(-2 pi i j k / n): rows j are all here, columns k are block number (own position) of as many.
  [[nodiscard]] Local twiddle(const FftPass& pass, const Region& from, const Region& to, std::int64_t chunk) const {
    const std::int64_t columns = pass.result[static_cast<std::size_t>(pass.to)];
    Numbering of_columns;
    if (pass.cut >= 0) of_columns.first.constant = chunk * (columns / problem_.chunks);
    std::int64_t stride = columns;
    for (std::size_t a = pass.axes.size(); a-- > 0; stride *= pass.axes[a].size) of_columns.first.terms.push_back({pass.axes[a], stride, 0});
    const auto n = static_cast<double>(problem_.extents[0]);
    return {.kind = LocalKind::twiddle, .reads = {from}, .writes = {to}, .factor = problem_.inverse ? -n : n, .dims = {pass.from, pass.to},
            .numbering = {Numbering{}, of_columns}};
  }

  ProgramBuilder& builder_;
  const FftProblem& problem_;
  const std::vector<FftPass>& passes_;
  std::vector<Region> regions_;  // regions_[p] is what pass p reads
  std::vector<Tasks> done_;      // per pass and chunk
  Tasks after_;
};

}  // namespace

Tasks add_naive_fft(ProgramBuilder& builder, const FftProblem& problem, const Region& x, const Region& y, const Tasks& after) {
  const std::size_t rank = problem.extents.size();
  // One all-gather along the last divided dimension, the blocks of all others beside each other in it: what one position along these has is the whole of
  // that dimension, so the first FFTs read it and put it in its place.
  std::vector<AxisView> axes;
  std::size_t along = 0;
  std::int64_t groups = 1;  // positions along the other divided dimensions
  for (std::size_t d = 0; d < rank; ++d)
    if (const std::vector<AxisView> own = dividing_axes(problem, d); !own.empty()) {
      groups = devices_along(axes);
      axes.insert(axes.end(), own.begin(), own.end());
      along = d;
    }
  Region whole = x;
  Tasks ready = after;
  if (!axes.empty()) {
    Extents extents = lengths_of(x);
    extents[along] *= devices_along(axes);
    whole = builder.scratch("gathered", extents, problem.input);
    ready = {builder.add("all-gather", Collective{CollectiveKind::all_gather, axes, x, whole, static_cast<int>(along), 0, 0, {}}, after)};
  }
  Tasks done;
  for (std::int64_t g = 0; g < groups; ++g) {
    Region to = y;
    std::int64_t rest = g;
    for (std::size_t d = along; d-- > 0;)
      if (const std::int64_t blocks = devices_along(dividing_axes(problem, d)); blocks > 1) {
        const std::int64_t length = problem.extents[d] / blocks;
        to = with(to, d, part(to.dims[d], rest % blocks * length, length));
        rest /= blocks;
      }
    const Region from = with(whole, along, part(whole.dims[along], g * problem.extents[along], problem.extents[along]));
    const int last = static_cast<int>(rank) - 1;
    done.push_back(builder.add(fmt::format("{} along {}{}", problem.inverse ? "ifft" : "fft", last, groups > 1 ? fmt::format(" s{}", g) : ""),
                               transform_of(problem, from, to, last, last), ready));
  }
  for (int d = static_cast<int>(rank) - 2; d >= 0; --d)
    done = {builder.add(fmt::format("{} along {}", problem.inverse ? "ifft" : "fft", d), transform_of(problem, y, y, d, d), done)};
  return done;
}

Tasks add_fft(ProgramBuilder& builder, FftMethod method, const FftProblem& problem, const Region& x, const Region& y, const Tasks& after) {
  PODSIM_ASSERT(fft_result(method, problem, builder.mesh()));
  if (method == FftMethod::naive) return add_naive_fft(builder, problem, x, y, after);
  const FftPasses passes = fft_passes(method, problem, builder.mesh());
  return PassWriter{builder, problem, passes.passes}.write(x, y, after);
}

}  // namespace podsim
