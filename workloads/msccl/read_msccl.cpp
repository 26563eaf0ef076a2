#include "workloads/msccl/read_msccl.hpp"

#include <fmt/format.h>

#include "sim/config/xml_elements.hpp"

namespace podsim {

namespace {

class Reader {
 public:
  Reader(const XmlText& xml, const std::string& file) : xml_{xml} { algorithm_.file = file; }

  Expected<MscclAlgorithm> read() {
    const pugi::xml_node root = xml_.root();
    if (auto ok = read_header(root); !ok) return ok.error();
    const auto gpus = xml_.children(root, "gpu");
    if (!gpus) return gpus.error();
    if (gpus->size() != algorithm_.gpus.size())
      return Diagnostic{xml_.where(root.attribute("ngpus")),
                        fmt::format("expected ngpus={}, as there are so many elements \"gpu\", found {}", gpus->size(), algorithm_.gpus.size())};
    seen_.resize(gpus->size());
    for (const pugi::xml_node node : *gpus)
      if (auto ok = read_gpu(node); !ok) return ok.error();
    if (const auto order = order_of(algorithm_); !order) return order.error();
    return std::move(algorithm_);
  }

 private:
  [[nodiscard]] MscclPosition position(pugi::xml_node node) const {
    const SourceLocation where = xml_.where(node);
    return {where.line, where.column};
  }

  Status read_header(pugi::xml_node root) {
    algorithm_.where = position(root);
    if (auto ok = xml_.check_attributes(root, {"name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace"},
                                        {"outofplace", "minBytes", "maxBytes"});
        !ok)
      return ok;
    algorithm_.name = root.attribute("name").value();
    algorithm_.collective = root.attribute("coll").value();
    algorithm_.protocol = root.attribute("proto").value();
    if (algorithm_.protocol != "Simple" && algorithm_.protocol != "LL" && algorithm_.protocol != "LL128")
      return Diagnostic{xml_.where(root.attribute("proto")), "expected proto Simple, LL or LL128, found " + quoted(algorithm_.protocol)};
    const auto channels = xml_.integer(root, "nchannels", 1, 1024),
               loop = xml_.integer(root, "nchunksperloop", 1, most_msccl_chunks * most_msccl_gpus),
               gpus = xml_.integer(root, "ngpus", 1, most_msccl_gpus), in_place = xml_.integer(root, "inplace", 0, 1);
    for (const auto* number : {&channels, &loop, &gpus, &in_place})
      if (!*number) return number->error();
    algorithm_.channels = static_cast<int>(*channels);
    algorithm_.chunks_per_loop = *loop;
    algorithm_.gpus.resize(static_cast<std::size_t>(*gpus));
    algorithm_.in_place = *in_place == 1;
    if (root.attribute("outofplace"))
      if (auto number = xml_.integer(root, "outofplace", 0, 1); !number) return number.error();
    for (const auto& [name, bytes] : {std::pair{"minBytes", &algorithm_.least}, {"maxBytes", &algorithm_.most}}) {
      if (!root.attribute(name)) continue;
      const auto number = xml_.integer(root, name, 0, std::int64_t{1} << 62);
      if (!number) return number.error();
      *bytes = Bytes{*number};
    }
    return success();
  }

  Status read_gpu(pugi::xml_node node) {
    if (auto ok = xml_.check_attributes(node, {"id", "i_chunks", "o_chunks", "s_chunks"}); !ok) return ok;
    const auto id = xml_.integer(node, "id", 0, static_cast<std::int64_t>(algorithm_.gpus.size()) - 1),
               inputs = xml_.integer(node, "i_chunks", 0, most_msccl_chunks), outputs = xml_.integer(node, "o_chunks", 0, most_msccl_chunks),
               scratch = xml_.integer(node, "s_chunks", 0, most_msccl_chunks);
    for (const auto* read : {&id, &inputs, &outputs, &scratch})
      if (!*read) return read->error();
    const auto number = static_cast<std::size_t>(*id);
    if (seen_[number]) return Diagnostic{xml_.where(node.attribute("id")), fmt::format("expected every GPU once, found {} twice", *id)};
    seen_[number] = true;
    algorithm_.gpus[number] = {*inputs, *outputs, *scratch, {}, position(node)};
    return read_blocks(node, static_cast<int>(*id));
  }

  Status read_blocks(pugi::xml_node node, int gpu_id) {
    const auto blocks = xml_.children(node, "tb");
    if (!blocks) return blocks.error();
    MscclGpu& gpu = algorithm_.gpus[static_cast<std::size_t>(gpu_id)];
    gpu.blocks.resize(blocks->size());
    std::vector<bool> seen(blocks->size());
    const auto last_gpu = static_cast<std::int64_t>(algorithm_.gpus.size()) - 1;
    for (const pugi::xml_node tb : *blocks) {
      if (auto ok = xml_.check_attributes(tb, {"id", "send", "recv", "chan"}); !ok) return ok;
      const auto id = xml_.integer(tb, "id", 0, static_cast<std::int64_t>(blocks->size()) - 1), send = xml_.integer(tb, "send", -1, last_gpu),
                 receive = xml_.integer(tb, "recv", -1, last_gpu), channel = xml_.integer(tb, "chan", 0, algorithm_.channels - 1);
      for (const auto* number : {&id, &send, &receive, &channel})
        if (!*number) return number->error();
      for (const auto& [name, peer] : {std::pair{"send", *send}, {"recv", *receive}})
        if (peer == gpu_id) return Diagnostic{xml_.where(tb.attribute(name)), fmt::format("expected another GPU than {} itself as {}", gpu_id, name)};
      const auto number = static_cast<std::size_t>(*id);
      if (seen[number]) return Diagnostic{xml_.where(tb.attribute("id")), fmt::format("expected every thread block once, found {} twice", *id)};
      seen[number] = true;
      gpu.blocks[number] = {static_cast<int>(*send), static_cast<int>(*receive), static_cast<int>(*channel), {}, position(tb)};
      if (auto ok = read_steps(tb, gpu, gpu.blocks[number]); !ok) return ok;
    }
    return success();
  }

  Status read_steps(pugi::xml_node tb, const MscclGpu& gpu, MscclBlock& block) {
    const auto steps = xml_.children(tb, "step");
    if (!steps) return steps.error();
    for (const pugi::xml_node node : *steps) {
      if (const auto none = xml_.children(node, ""); !none) return none.error();
      auto step = read_step(node, gpu, block);
      if (!step) return step.error();
      block.steps.push_back(*std::move(step));
    }
    return success();
  }

  Expected<MscclKind> kind_of(pugi::xml_node node) const {
    const std::string_view text = node.attribute("type").value();
    std::string names;
    for (std::size_t k = 0; k < msccl_kinds.size(); ++k) {
      if (msccl_kinds[k].name == text) return static_cast<MscclKind>(k);
      names += fmt::format("{}{}", k == 0 ? "" : k + 1 == msccl_kinds.size() ? " or " : ", ", msccl_kinds[k].name);
    }
    return Diagnostic{xml_.where(node.attribute("type")), fmt::format("expected the type {}, found {}", names, quoted(text))};
  }

  /// Chunks of a buffer; `used` of the own GPU's, where they have to exist.
  Expected<MscclPlace> read_place(pugi::xml_node node, const char* buffer_name, const char* chunk_name, std::int64_t count, const MscclGpu& gpu,
                                  bool used) const {
    const std::string_view text = node.attribute(buffer_name).value();
    if (text != "i" && text != "o" && text != "s")
      return Diagnostic{xml_.where(node.attribute(buffer_name)), fmt::format("expected {} i, o or s, found {}", buffer_name, quoted(text))};
    const MscclBuffer buffer = text == "i" ? MscclBuffer::input : text == "o" ? MscclBuffer::output : MscclBuffer::scratch;
    const auto chunk = xml_.integer(node, chunk_name, -1, most_msccl_chunks);
    if (!chunk) return chunk.error();
    if (used && (*chunk < 0 || *chunk + count > gpu.chunks(buffer)))
      return Diagnostic{
          xml_.where(node.attribute(chunk_name)),
          fmt::format("expected {} chunks of the buffer {}, which has {}, found those from {} on", count, text, gpu.chunks(buffer), *chunk)};
    return MscclPlace{buffer, *chunk};
  }

  Expected<MscclStep> read_step(pugi::xml_node node, const MscclGpu& gpu, const MscclBlock& block) {
    if (auto ok = xml_.check_attributes(node, {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"}); !ok)
      return ok.error();
    const auto next = static_cast<std::int64_t>(block.steps.size());
    if (auto number = xml_.integer(node, "s", next, next); !number) return number.error();
    const auto kind = kind_of(node);
    if (!kind) return kind.error();
    MscclStep step;
    step.kind = *kind;
    step.where = position(node);
    const MscclKindTraits& traits = traits_of(*kind);
    for (const auto& [needed, peer, name] : {std::tuple{traits.sends, block.send, "send"}, {traits.receives, block.receive, "recv"}})
      if (needed && peer < 0)
        return Diagnostic{xml_.where(node.attribute("type")),
                          fmt::format("expected a thread block with {} for a step {}, found {}=\"-1\"", name, traits.name, name)};
    const bool waits_only = *kind == MscclKind::nop;
    const auto count = xml_.integer(node, "cnt", waits_only ? 0 : 1, most_msccl_chunks);
    if (!count) return count.error();
    step.count = waits_only ? 0 : *count;
    moved_ += step.count;
    if (moved_ > most_moved_chunks)
      return Diagnostic{xml_.where(node.attribute("cnt")),
                        fmt::format("expected steps that move at most {} chunks in all, found more", most_moved_chunks)};
    const auto source = read_place(node, "srcbuf", "srcoff", step.count, gpu, traits.reads_source),
               target = read_place(node, "dstbuf", "dstoff", step.count, gpu, traits.writes_target);
    for (const auto* place : {&source, &target})
      if (!*place) return place->error();
    step.source = *source, step.target = *target;
    const auto after_block = xml_.integer(node, "depid", -1, 1 << 20), has_dependents = xml_.integer(node, "hasdep", 0, 1);
    for (const auto* number : {&after_block, &has_dependents})
      if (!*number) return number->error();
    const auto after_step = xml_.integer(node, "deps", *after_block < 0 ? -1 : 0, 1 << 20);
    if (!after_step) return after_step.error();
    step.after_block = static_cast<int>(*after_block);
    step.after_step = *after_block < 0 ? -1 : static_cast<int>(*after_step);
    step.has_dependents = *has_dependents == 1;
    return step;
  }

  const XmlText& xml_;
  MscclAlgorithm algorithm_;
  std::vector<bool> seen_;  // GPUs
  std::int64_t moved_ = 0;
};

}  // namespace

Expected<MscclAlgorithm> read_msccl(std::string_view text, const std::string& file) {
  if (static_cast<std::int64_t>(text.size()) > msccl_limit.text.count())
    return Diagnostic{{file, 0, 0}, fmt::format("expected at most {} bytes, found {}", msccl_limit.text.count(), text.size())};
  const auto xml = XmlText::parse(text, file, "algo");
  if (!xml) return xml.error();
  return Reader{*xml, file}.read();
}

}  // namespace podsim
