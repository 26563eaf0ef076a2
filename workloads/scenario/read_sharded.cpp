// Sharded programs from fields and files.
#include <fmt/format.h>

#include <algorithm>

#include "sim/base/blame.hpp"
#include "sim/base/text.hpp"
#include "sim/config/files.hpp"
#include "sim/config/message_file.hpp"
#include "workloads/scenario/program.pb.h"
#include "workloads/scenario/read_scenario.hpp"

namespace podsim {

namespace {

constexpr FileFormat program_format{"a sharded program", 0, 1};

/// The place of the first character of a text value that begins behind the field's name, if it is written as `name: "`.
SourceLocation place_of_value(SourceLocation where, std::string_view name, const std::vector<std::string>& lines) {
  const std::string begin = std::string{name} + ": \"";
  if (where.line < 1 || static_cast<std::size_t>(where.line) > lines.size() || where.column < 1) return where;
  const std::string& line = lines[static_cast<std::size_t>(where.line) - 1];
  const auto column = static_cast<std::size_t>(where.column) - 1;
  if (column < line.size() && std::string_view{line}.substr(column).starts_with(begin)) where.column += static_cast<int>(begin.size());
  return where;
}

/// Whether a statement calls one of the functions that factorise or transform.
bool has_kernels(const std::vector<ProgramText::Entry>& statements) {
  return std::any_of(statements.begin(), statements.end(), [](const ProgramText::Entry& entry) {
    for (const std::string_view call : {"fft", "lu", "solve"})
      for (std::size_t at = entry.text.find(call); at != std::string::npos; at = entry.text.find(call, at + 1)) {
        const std::size_t behind = entry.text.find_first_not_of(' ', at + call.size());
        const bool whole = at == 0 || std::string_view{" =(,+-*/@i;\n\t"}.find(entry.text[at - 1]) != std::string_view::npos;
        if (whole && behind != std::string::npos && entry.text[behind] == '(') return true;
      }
    return false;
  });
}

Expected<ProgramText> load_program_text(const std::string& path, DType default_dtype) {
  const auto content = read_file(path, config_limit);
  if (!content) return content.error();
  proto::ProgramFile message;
  MessageFile file{program_format, path, message};
  if (!file.parse(*content)) return file.error();
  ProgramText text;
  text.dtype = default_dtype;
  const std::vector<std::string> lines = split(*content, '\n');
  const Place root;
  const auto take = [&](const char* name, const auto& values, std::vector<ProgramText::Entry>& entries) {
    for (int i = 0; i < values.size(); ++i) entries.push_back({values.Get(i), place_of_value(file.where(root.at(name, i)), name, lines)});
  };
  take("statement", message.statement(), text.statements);
  take("shape", message.shape(), text.shapes);
  take("shard", message.shard(), text.shards);
  take("out", message.out(), text.outs);
  if (message.has_dtype()) {
    const auto dtype = parse_dtype(message.dtype(), file.where(root.at("dtype")));
    if (!dtype) return dtype.error();
    text.dtype = *dtype;
  } else if (has_kernels(text.statements)) {
    text.dtype = DType::f32;
  }
  return text;
}

/// The texts of a field; several may stand in one, separated by semicolons.
void append(std::vector<ProgramText::Entry>& entries, const Fields& fields, std::string_view name) {
  for (const FieldText& given : fields.texts(name)) {
    std::size_t begin = 0;
    for (const std::string& piece : split(given.text, ';')) {
      SourceLocation where = given.where;
      const std::size_t blanks = std::min(piece.find_first_not_of(" \t"), piece.size());
      where.line = std::max(where.line, 1);
      where.column = std::max(where.column, 1) + static_cast<int>(begin + blanks);
      where.is_field = false;
      entries.push_back({std::string{trimmed(piece)}, where});
      begin += piece.size() + 1;
    }
  }
}

/// The same beside a file, whose entries of the same names give way.
void complete(std::vector<ProgramText::Entry>& entries, const Fields& fields, std::string_view name) {
  const auto name_of = [](const ProgramText::Entry& entry) { return trimmed(std::string_view{entry.text}.substr(0, entry.text.find('='))); };
  std::vector<ProgramText::Entry> given;
  append(given, fields, name);
  std::erase_if(entries, [&](const ProgramText::Entry& entry) {
    return std::any_of(given.begin(), given.end(), [&](const ProgramText::Entry& own) { return name_of(own) == name_of(entry); });
  });
  entries.insert(entries.end(), given.begin(), given.end());
}

Expected<ProgramText> program_text(const Fields& fields, DType default_dtype) {
  const std::string given = fields.text("program");
  ProgramText text;
  text.dtype = default_dtype;
  if (given.ends_with(".textproto")) {
    auto loaded = load_program_text(given, default_dtype);
    if (!loaded) return fields.of_named_file("program", loaded.error());
    text = *std::move(loaded);
  } else {
    SourceLocation where = fields.where("program");
    where.is_field = false;
    text.statements.push_back({given, where});
    if (has_kernels(text.statements)) text.dtype = DType::f32;
  }
  complete(text.shapes, fields, "shape");
  complete(text.shards, fields, "shard");
  complete(text.outs, fields, "out");
  if (fields.has("dtype")) {
    const auto dtype = parse_dtype(fields.text("dtype"), fields.where("dtype"));
    if (!dtype) return dtype.error();
    text.dtype = *dtype;
  }
  text.pad = fields.flag("pad");
  text.iterate = fields.flag("chain");
  return text;
}

Expected<ProgramSpec::ChainSearch> read_chain(const Fields& fields, const ProgramText& text, const ShardedProgram& program) {
  ProgramSpec::ChainSearch chain;
  const auto minimise = parse_minimise(fields.text("minimise"), fields.where("minimise"));
  if (!minimise) return minimise.error();
  chain.minimise = *minimise;
  for (const ProgramText::Entry& shard : text.shards) chain.fixed.emplace(trimmed(std::string_view{shard.text}.substr(0, shard.text.find('='))));
  std::vector<std::string> inputs;
  for (const Operation& operation : program.operations)
    if (operation.op == ArrayOp::input) inputs.push_back(operation.name);
  for (const FieldText& given : fields.texts("replicate"))
    for (const std::string& piece : split(given.text)) {
      const std::string name{trimmed(piece)};
      if (name == "all") {
        chain.replicate.insert(inputs.begin(), inputs.end());
        continue;
      }
      if (std::find(inputs.begin(), inputs.end(), name) == inputs.end())
        return Diagnostic{given.where, "expected all, or the name of an input, found " + quoted(name) + did_you_mean(name, inputs)};
      if (chain.fixed.contains(name)) return Diagnostic{given.where, quoted(name) + " has a sharding: expected operands without one"};
      chain.replicate.insert(name);
    }
  return chain;
}

}  // namespace

std::optional<ProgramText> read_equals(const Fields& fields) {
  if (!fields.has("equals")) return std::nullopt;
  ProgramText text;
  append(text.statements, fields, "equals");
  append(text.shapes, fields, "shape");
  append(text.shards, fields, "shard");
  append(text.outs, fields, "out");
  return text;
}

Expected<Choose> parse_choose(const std::string& text, const SourceLocation& where) {
  if (text == "default") return Choose::by_default;
  if (text == "bytes") return Choose::bytes;
  if (text == "time") return Choose::time;
  return wrong_word("choose", text, where);
}

Expected<Minimise> parse_minimise(const std::string& text, const SourceLocation& where) {
  if (text == "bytes") return Minimise::bytes;
  if (text == "collectives") return Minimise::collectives;
  if (text == "time") return Minimise::time;
  return wrong_word("minimise", text, where);
}

Expected<ProgramSpec> read_sharded(const Fields& fields, const System& system, DType default_dtype, bool algorithms) {
  auto text = program_text(fields, default_dtype);
  if (!text) return text.error();
  const auto kernels = read_kernels(fields, system.machine, algorithms);
  if (!kernels) return kernels.error();
  text->kernels = *kernels;
  for (const char* name : {"minimise", "replicate"})
    if (fields.has(name) && !fields.flag("chain")) return Diagnostic{fields.where(name), "belongs to `chain`"};
  if (fields.has("choose") && fields.flag("chain")) return Diagnostic{fields.where("choose"), "expected `minimise` with `chain`, which chooses all shardings itself"};
  if (fields.flag("pad") && fields.flag("chain")) return Diagnostic{fields.where("pad"), "does not go with `chain`, which takes shardings that divide"};
  auto program = read_program(*text, system.mesh);
  if (!program) return program.error();
  if (algorithms)
    if (Status belong = kernels_belong(fields, *program); !belong) return belong.error();
  ProgramSpec spec{*std::move(program)};
  const auto choose = parse_choose(fields.text("choose"), fields.where("choose"));
  if (!choose) return choose.error();
  spec.choose = *choose;
  if (fields.has("collectives")) {
    auto policy = parse_policy(fields.text("collectives"), fields.where("collectives"));
    if (!policy) return policy.error();
    spec.collectives = *std::move(policy);
  }
  if (!fields.flag("chain")) return spec;
  auto chain = read_chain(fields, *text, spec.program);
  if (!chain) return chain.error();
  spec.chain = *std::move(chain);
  return spec;
}

}  // namespace podsim
