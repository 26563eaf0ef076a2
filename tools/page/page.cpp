#include "tools/page/page.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cassert>
#include <iterator>

#include "sim/config/message_file.hpp"
#include "tools/page/page_parts.hpp"
#include "tools/report/json.hpp"
#include "tools/report/run_operations.hpp"

namespace podsim {

namespace {

std::string_view part(std::string_view name) {
  const auto parts = page_parts();
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const EmbeddedFile& file) { return file.name == name; });
  assert(found != parts.end());
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

/// [a,b,...] of `number` of each bar.
template <class Number>
void put_numbers(std::string& out, std::string_view name, const std::vector<RecordedBar>& bars, Number number) {
  fmt::format_to(std::back_inserter(out), R"(,"{}":[)", name);
  for (std::size_t b = 0; b < bars.size(); ++b) fmt::format_to(std::back_inserter(out), "{}{}", b == 0 ? "" : ",", number(b));
  out += "]";
}

void put_timeline(std::string& out, const RecordedTimeline& timeline) {
  fmt::format_to(std::back_inserter(out), R"({{"device":{},"name":{},"alike":{},"lines":[)", timeline.device, json_text(timeline.name), timeline.alike);
  for (std::size_t l = 0; l < timeline.lines.size(); ++l) {
    const auto& [name, bars] = timeline.lines[l];
    fmt::format_to(std::back_inserter(out), R"({}{{"name":{})", l == 0 ? "" : ",", json_text(name));
    put_numbers(out, "task", bars, [&](std::size_t b) { return bars[b].task; });
    put_numbers(out, "gap", bars, [&](std::size_t b) { return (bars[b].begin - (b == 0 ? Picoseconds{} : bars[b - 1].end)).count(); });
    put_numbers(out, "length", bars, [&](std::size_t b) { return (bars[b].end - bars[b].begin).count(); });
    out += "}";
  }
  out += "]}";
}

std::string data_of(const Record& record, const std::string& name) {
  Json machine = Json::array(), missing = Json::array(), tasks = Json::array();
  for (const SourcedValue& value : record.machine) machine.push_back(Json{{"path", value.path}, {"value", value.value}, {"source", value.source}});
  for (const std::string& what : record.missing) missing.push_back(what);
  for (const std::string& task : record.tasks) tasks.push_back(task);
  std::string out = fmt::format(R"({{"file":{},"version":{},"command":{},"machine":{},"missing":{},"tasks":{},"timelines":[)", json_text(name),
                                json_text(record.podsim_version), json_text(record.command), machine.dump(), missing.dump(), tasks.dump());
  for (std::size_t t = 0; t < record.timelines.size(); ++t) {
    if (t > 0) out += ",";
    put_timeline(out, record.timelines[t]);
  }
  return out + "],\"result\":" + record.result + "}";
}

}  // namespace

Expected<Record> read_record_or_json(std::string_view bytes, const std::string& file) {
  Record record;
  const bool is_record = bytes.starts_with(binary_magic);
  if (is_record) {
    auto read = read_record(bytes, file);
    if (!read) return read.error();
    record = *std::move(read);
  } else {
    record.result = bytes;
    record.missing = {"the command, the machine's values and the timelines: this is the JSON of a run; podsim run --record FILE writes all"};
  }
  if (auto step = read_run_step(record.result, is_record ? file + ": result" : file); !step) return step.error();
  const simdjson::padded_string padded{record.result};
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  const auto error = parser.parse(padded).get(json);
  assert(error == simdjson::SUCCESS && "it was read before");
  record.result = simdjson::minify(json);
  return record;
}

std::string page_of(const std::vector<Record>& records, const std::vector<std::string>& names) {
  std::string data = "[";
  for (std::size_t r = 0; r < records.size(); ++r) data += (r == 0 ? "" : ",") + data_of(records[r], names[r]);
  data += "]";
  std::string scripts;
  for (const char* script : {"text", "charts", "timeline", "main"}) scripts += part(script);
  std::string page{part("frame")};
  const auto put = [&](std::string_view mark, std::string_view text) { page.replace(page.find(mark), mark.size(), text); };
  put("/*style*/", part("style"));
  put("/*scripts*/", scripts);
  put("/*data*/", in_script(data));
  return page;
}

}  // namespace podsim
