// Sweeps: run in this process, or dealt out in batches by whoever has a cluster.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "tools/python/core.hpp"
#include "tools/python/stoppable_work.hpp"
#include "tools/sweep/batch.hpp"
#include "tools/sweep/sweep_check.hpp"
#include "tools/sweep/sweep_file.hpp"

namespace py = pybind11;

namespace podsim::python {

namespace {

py::dict counts_of(const SweepEnd& end) {
  py::dict counts;
  counts["points"] = end.count.points;
  counts["known"] = end.count.known;
  counts["finished"] = end.count.finished;
  counts["skipped"] = end.count.skipped;
  counts["simulated"] = end.count.simulated;
  counts["failed"] = end.count.failed;
  counts["remaining"] = end.count.remaining();
  py::dict failures;
  for (const auto& [position, why] : end.failures) failures[py::int_(position + 1)] = why;
  counts["failures"] = failures;
  return counts;
}

/// Does `work` so that Ctrl-C stops it, with what it had done by then in its result.
template <class Work>
auto stoppable(bool on_main, const py::object& progress, Work&& work) {
  StoppableWork stoppable;
  const auto tell = progress.is_none() ? std::function<void(const std::string&)>{} : stoppable.calling(progress);
  decltype(work(stoppable.stop, tell)) result = cancelled_work();
  stoppable.perform([&] { result = work(stoppable.stop, tell); }, on_main);
  stoppable.rethrow(stoppable.stop);
  return std::pair{value_or_raise(std::move(result)), stoppable.stop.load()};
}

py::tuple run_batch_of(const py::bytes& message, int threads, bool on_main) {
  const std::string text = message;
  const auto [results, stopped] = stoppable(
      on_main, py::none(), [&](const std::atomic<bool>& stop, const auto&) { return run_batch(text, PODSIM_VERSION, threads, Cancellation{&stop}); });
  return py::make_tuple(py::bytes(results), stopped);
}

py::tuple run_sweep_of(const std::string& text, const std::string& file, const std::string& store_file, const std::string& shard, int threads,
                       const py::object& progress, bool on_main) {
  SweepText sweep{text, file, PODSIM_VERSION, {}};
  if (!shard.empty()) sweep.shard = value_or_raise(parse_shard(shard, of_field("shard")));
  const auto [end, stopped] = stoppable(on_main, progress, [&](const std::atomic<bool>& stop, const auto& tell) -> Expected<SweepEnd> {
    auto blocks = read_sweep(text, file);
    if (!blocks) return blocks.error();
    const auto points = checked_points(*std::move(blocks));
    if (!points) return points.error();
    auto store = SweepStore::open(store_file);
    if (!store) return store.error();
    SweepOptions options;
    options.threads = threads;
    options.stop = Cancellation{&stop};
    if (tell)
      options.progress = [&](const SweepCount& count) { tell(std::to_string(count.known + count.finished) + " of " + std::to_string(count.points) + " points"); };
    return run_sweep(sweep, *points, *store, options);
  });
  return py::make_tuple(counts_of(end), stopped);
}

}  // namespace

void bind_sweep(py::module_& module) {
  py::class_<BatchedSweep>(module, "Sweep", "a sweep whose points are dealt out in batches; one thread at a time")
      .def(py::init([](const std::string& text, const std::string& file, const std::string& store) {
             const py::gil_scoped_release unlocked;
             return std::make_unique<BatchedSweep>([&] {
               auto opened = BatchedSweep::open({text, file, PODSIM_VERSION, {}}, store);
               if (opened) return *std::move(opened);
               const py::gil_scoped_acquire locked;
               raise(opened.error());
             }());
           }),
           py::arg("text"), py::arg("file"), py::arg("store"))
      .def("points_in", &BatchedSweep::points_in)
      .def("next",
           [](BatchedSweep& sweep, std::size_t most) {
             Batch batch = sweep.next(most);
             return py::make_tuple(batch.positions, py::bytes(batch.message));
           })
      .def("give_back", &BatchedSweep::give_back)
      .def("add",
           [](BatchedSweep& sweep, const py::bytes& results) {
             if (auto ok = sweep.add(std::string{results}); !ok) raise(ok.error());
           })
      .def("counts", [](const BatchedSweep& sweep) { return counts_of(sweep.end()); })
      .def("close", [](BatchedSweep& sweep) {
        if (auto ok = sweep.close(); !ok) raise(ok.error());
      });
  module.def(
      "form_in_sweep", [](const std::string& field) { return std::string{form_in_file(field)}; }, "text, number or flag; empty: sweeps have no such field");
  module.def("run_batch", &run_batch_of, "results of a batch, and whether it was stopped");
  module.def("run_sweep", &run_sweep_of, "counts of a sweep, and whether it was stopped");
}

}  // namespace podsim::python
