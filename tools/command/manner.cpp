#include "tools/command/manner.hpp"

#include "sim/engine/table/engines.hpp"

namespace podsim {

po::options_description threads_option() {
  po::options_description described;
  described.add_options()("threads", po::value<std::string>()->value_name("N")->default_value("0"),
                          "runs at a time, where there are several; 0: all cores.\nThe results do not depend on it");
  return described;
}

po::options_description engine_options() {
  po::options_description described{"engine"};
  described.add_options()                                                                                                   //
      ("engine", po::value<std::string>()->value_name("des|simgrid|analytic")->default_value("des"), "who keeps the time; analytic: as if no two messages shared a link")  //
      ("fold", po::value<std::string>()->value_name("auto|off")->default_value("auto"),
       "auto: devices that behave alike are simulated once, to the same\npicosecond; off: every device")  //
      ("force", po::bool_switch(), "simulate however many task instances there are");
  described.add(threads_option());
  return described;
}

Manner manner_of(const Console& console, int threads) {
  Manner manner;
  manner.threads = threads;
  manner.control.stop = console.interrupted;
  return manner;
}

Expected<Manner> manner_of(const Options& options, const Console& console) {
  Manner manner = manner_of(console);
  const auto engine = timing_engine(options.text("engine"));
  if (!engine) return Diagnostic{option("engine"), engine.error().message};
  manner.engine = *engine;
  const std::string& fold = options.text("fold");
  if (fold != "auto" && fold != "off") return Diagnostic{option("fold"), "expected auto or off, found " + quoted(fold)};
  manner.fold = fold == "auto";
  manner.force = options.flag("force");
  const auto threads = options.integer("threads", 0, 1024);
  if (!threads) return threads.error();
  manner.threads = static_cast<int>(*threads);
  return manner;
}

}  // namespace podsim
