#include "tools/page/page.hpp"

#include <zlib.h>

#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "sim/base/invariant.hpp"
#include "sim/config/message_file.hpp"
#include "tools/page/page_parts.hpp"
#include "tools/report/json.hpp"
#include "tools/report/role_colours.hpp"
#include "tools/report/run_operations.hpp"

namespace podsim {

namespace {

constexpr std::size_t largest_plain_data = 1 << 20;  // bytes; what is larger is compressed, and browsers of before 2023 cannot read it

std::string_view part(std::string_view name) {
  const auto parts = page_parts();
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const EmbeddedFile& file) { return file.name == name; });
  PODSIM_ASSERT(found != parts.end());
  return found->text;
}

/// JSON that a `script` element may hold: nothing in it ends the element.
std::string in_script(std::string_view json) {
  std::string text;
  for (const char c : json)
    if (c == '<')
      text += "\\u003c";  // only texts hold it
    else
      text += c;
  return text;
}

std::string in_base64(std::string_view bytes) {
  using namespace boost::archive::iterators;
  using Base64 = base64_from_binary<transform_width<std::string_view::const_iterator, 6, 8>>;
  std::string base64{Base64(bytes.begin()), Base64(bytes.end())};
  base64.append((4 - base64.size() % 4) % 4, '=');
  return base64;
}

/// Compressed by zlib, in base64, which holds nothing that ends an element either.
std::string compressed(std::string_view text) {
  uLongf size = compressBound(text.size());
  std::string bytes(size, '\0');
  [[maybe_unused]] const int status = compress2(reinterpret_cast<Bytef*>(bytes.data()), &size, reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_BEST_COMPRESSION);  // NOLINT: zlib's C interface
  PODSIM_ASSERT(status == Z_OK && "there is memory");
  bytes.resize(size);
  return in_base64(bytes);
}

/// Where the name of an operation begins in a label: behind the trips of the loops that it is in, "while.1 3 ", or the layers.
std::size_t behind_trips(std::string_view label) {
  constexpr std::string_view digits = "0123456789";
  std::size_t name = 0;
  while (true) {
    const std::size_t number = label.find(' ', name);
    if (number == std::string_view::npos || number == name) return name;
    const std::size_t end = label.find_first_not_of(digits, number + 1);
    if (end == std::string_view::npos || end == number + 1 || label[end] != ' ') return name;
    name = end + 1;
  }
}

/// Numbers texts in the order in which they first come.
class Numbered {
 public:
  std::size_t operator()(std::string_view text) {
    const auto [found, is_new] = numbers_.try_emplace(std::string{text}, numbers_.size());
    if (is_new) texts.emplace_back(text);
    return found->second;
  }
  std::vector<std::string> texts{};

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
};

/// ,"name":[a,b,...] of `number` of each of `count`.
template <class Number>
void put_numbers(std::string& out, std::string_view name, std::size_t count, Number number) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":[)", name);
  for (std::size_t i = 0; i < count; ++i) fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ",", number(i));
  out += "]";
}

/// The labels and roles of tasks: each trip and each name once, as a loop's body has thousands of one name.
std::string tasks_of(const std::vector<std::string>& tasks, const std::vector<std::string>& task_roles) {
  Numbered trips, names, roles;
  std::vector<std::size_t> trip, name, role;
  for (const std::string& of_task : task_roles) role.push_back(roles(of_task));
  for (const std::string& task : tasks) {
    const std::size_t begins = behind_trips(task);
    trip.push_back(trips(std::string_view{task}.substr(0, begins)));
    name.push_back(names(std::string_view{task}.substr(begins)));
  }
  std::string out = fmt::format(R"({{"trips":{},"names":{},"roles":{})", Json(trips.texts).dump(), Json(names.texts).dump(), Json(roles.texts).dump());
  put_numbers(out, "trip", trip.size(), [&](std::size_t t) { return trip[t]; });
  put_numbers(out, "name", name.size(), [&](std::size_t t) { return name[t]; });
  put_numbers(out, "role", role.size(), [&](std::size_t t) { return role[t]; });
  return out + "}";
}

/// Times as what each lies behind the one before.
Picoseconds before(const std::vector<RecordedChange>& changes, std::size_t c) { return c == 0 ? Picoseconds{} : changes[c - 1].at; }

void put_timeline(std::string& out, const RecordedTimeline& timeline) {
  fmt::format_to(std::back_inserter(out), R"({{"device":{},"name":{},"alike":{},"lines":[)", timeline.device, json_text(timeline.name), timeline.alike);
  for (std::size_t l = 0; l < timeline.lines.size(); ++l) {
    const auto& [name, bars] = timeline.lines[l];
    fmt::format_to(std::back_inserter(out), R"({}{{"name":{})", l == 0 ? "" : ",", json_text(name));
    // As differences, which are alike in every trip of a loop, so that they compress.
    put_numbers(out, "task_step", bars.size(), [&](std::size_t b) { return std::int64_t{bars[b].task} - (b == 0 ? 0 : std::int64_t{bars[b - 1].task}); });
    put_numbers(out, "gap", bars.size(), [&](std::size_t b) { return (bars[b].begin - (b == 0 ? Picoseconds{} : bars[b - 1].end)).count(); });
    put_numbers(out, "length", bars.size(), [&](std::size_t b) { return (bars[b].end - bars[b].begin).count(); });
    if (std::ranges::any_of(bars, [](const RecordedBar& bar) { return bar.call != 0; })) put_numbers(out, "call", bars.size(), [&](std::size_t b) { return bars[b].call; });
    out += "}";
  }
  out += "]";
  if (const std::vector<RecordedChange>& changes = timeline.memory; !changes.empty()) {
    out += R"(,"memory":{"changes":)" + std::to_string(changes.size());
    put_numbers(out, "gap", changes.size(), [&](std::size_t c) { return (changes[c].at - before(changes, c)).count(); });
    put_numbers(out, "kind", changes.size(), [&](std::size_t c) { return changes[c].kind; });
    put_numbers(out, "by", changes.size(), [&](std::size_t c) { return changes[c].by.count(); });
    out += "}";
  }
  out += "}";
}

void put_network(std::string& out, const RecordedNetwork& network) {
  const std::vector<RecordedLink>& links = network.links;
  fmt::format_to(std::back_inserter(out), R"(,"network":{{"chips":{},"extents":{},"nodes":{})", network.chips, Json(network.extents).dump(), Json(network.nodes).dump());
  put_numbers(out, "from", links.size(), [&](std::size_t l) { return links[l].from; });
  put_numbers(out, "to", links.size(), [&](std::size_t l) { return links[l].to; });
  put_numbers(out, "dimension", links.size(), [&](std::size_t l) { return links[l].dimension; });
  put_numbers(out, "bytes", links.size(), [&](std::size_t l) { return links[l].bytes; });
  put_numbers(out, "utilisation", links.size(), [&](std::size_t l) { return links[l].utilisation; });
  out += "}";
}

/// A picture as the address of an image, which no browser runs.
std::string image(std::string_view svg) { return "data:image/svg+xml;base64," + in_base64(svg); }

std::string data_of(const Record& record, const std::string& name) {
  Json machine = Json::array();
  for (const SourcedValue& value : record.machine) machine.push_back(Json{{"path", value.path}, {"value", value.value}, {"source", value.source}});
  Json calls = Json::array();
  for (const RecordedCall& call : record.calls) {
    Json parts = Json::array();
    for (const auto& [part, time] : call.parts) parts.push_back(Json{{"name", part}, {"time_s", to_seconds(time).count()}});
    calls.push_back(Json{{"name", call.name}, {"parts", parts}});
  }
  std::string out = fmt::format(R"({{"kind":"{}","file":{},"version":{},"command":{},"machine":{},"missing":{},"tasks":{},"memory_kinds":{},"calls":{},"timelines":[)",
                                name_of(record.kind), json_text(name), json_text(record.podsim_version), json_text(record.command), machine.dump(),
                                Json(record.missing).dump(), tasks_of(record.tasks, record.task_roles), Json(record.memory_kinds).dump(), calls.dump());
  for (std::size_t t = 0; t < record.timelines.size(); ++t) {
    if (t > 0) out += ",";
    put_timeline(out, record.timelines[t]);
  }
  out += "]";
  if (record.network) put_network(out, *record.network);
  if (record.pipeline)
    if (const auto picture = pipeline_svg(*record.pipeline))
      out += fmt::format(R"(,"pipeline":{{"title":{},"bubble":{},"picture":{}}})", json_text(record.pipeline->title), record.pipeline->bubble_fraction(), json_text(image(*picture)));
  return out + ",\"result\":" + record.result + "}";
}

/// The table of role_colours.hpp, as a constant of the page's scripts.
std::string colours_in_script() {
  Json roles = Json::object();
  for (const auto& [role, colour] : role_colours()) roles.set(role, hex(colour));
  const auto list = [](std::span<const Colour> colours) {
    Json all = Json::array();
    for (const Colour colour : colours) all.push_back(hex(colour));
    return all;
  };
  return "const colours = " + Json{{"roles", roles}, {"axes", list(axis_colours())}, {"series", list(series_colours())}}.dump() + ";\n";
}

}  // namespace

Expected<Record> read_record_or_json(std::string_view bytes, const std::string& file) {
  Record record;
  const bool is_record = bytes.starts_with(binary_magic);
  if (is_record) {
    auto read = read_record(bytes, file);
    if (!read) return read.error();
    record = *std::move(read);
    if (!record.timelines.empty() && record.task_roles.empty())
      record.missing.emplace_back("the colours of the timeline: an earlier podsim recorded the run; podsim run --record FILE writes them");
  } else {
    if (const auto first = bytes.find_first_not_of(" \t\r\n"); first != std::string_view::npos && bytes[first] != '{')
      return Diagnostic{{file, 1, 1}, "expected a record, as --record writes it, or the JSON of a command, found neither"};
    const auto kind = kind_of_result(bytes, file);
    if (!kind) return kind.error();
    record.kind = *kind;
    record.result = bytes;
    record.missing = {record.kind == ResultKind::run ? "the command, the machine's values, the timelines, the links and live memory: this is the JSON of a run; podsim run --record FILE writes all"
                                                     : "the command: this is JSON; --record FILE writes it too"};
  }
  if (record.kind == ResultKind::run)
    if (auto step = read_run_step(record.result, is_record ? file + ": result" : file); !step) return step.error();
  record.result = on_one_line(record.result);
  return record;
}

std::string page_of(const std::vector<Record>& records, const std::vector<std::string>& names) {
  std::string data = "[";
  for (std::size_t r = 0; r < records.size(); ++r) data += (r == 0 ? "" : ",") + data_of(records[r], names[r]);
  data += "]";
  std::string scripts = colours_in_script();
  for (const char* script : {"text", "tables", "charts", "scatter", "timeline", "memory", "network_places", "network", "run", "comparison", "tuning", "validation", "differences", "explained", "measured", "calibration", "check", "sweep", "main"}) scripts += part(script);
  std::string page{part("frame")};
  const auto put = [&](std::string_view mark, std::string_view text) { page.replace(page.find(mark), mark.size(), text); };
  put("/*style*/", part("style"));
  put("/*scripts*/", scripts);
  const bool is_large = data.size() > largest_plain_data;
  put("/*type*/", is_large ? "application/octet-stream" : "application/json");
  put("/*data*/", is_large ? compressed(data) : in_script(data));
  return page;
}

}  // namespace podsim
