#include "workloads/msccl/write_msccl.hpp"

#include <pugixml.hpp>

#include <sstream>

namespace podsim {

namespace {

const char* name_of(MscclBuffer buffer) { return buffer == MscclBuffer::input ? "i" : buffer == MscclBuffer::output ? "o" : "s"; }

void set(pugi::xml_node node, const char* name, long long value) { node.append_attribute(name).set_value(value); }
void set(pugi::xml_node node, const char* name, const std::string& value) { node.append_attribute(name).set_value(value.c_str()); }

void add_step(pugi::xml_node tb, const MscclStep& step, std::size_t number) {
  pugi::xml_node node = tb.append_child("step");
  set(node, "s", static_cast<long long>(number));
  set(node, "type", std::string{traits_of(step.kind).name});
  set(node, "srcbuf", name_of(step.source.buffer));
  set(node, "srcoff", step.source.chunk);
  set(node, "dstbuf", name_of(step.target.buffer));
  set(node, "dstoff", step.target.chunk);
  set(node, "cnt", step.count);
  set(node, "depid", step.after_block);
  set(node, "deps", step.after_step);
  set(node, "hasdep", step.has_dependents ? 1 : 0);
}

}  // namespace

std::string write_msccl(const MscclAlgorithm& algorithm) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("algo");
  set(root, "name", algorithm.name);
  set(root, "proto", algorithm.protocol);
  set(root, "nchannels", algorithm.channels);
  set(root, "nchunksperloop", algorithm.chunks_per_loop);
  set(root, "ngpus", static_cast<long long>(algorithm.gpus.size()));
  set(root, "coll", algorithm.collective);
  set(root, "inplace", algorithm.in_place ? 1 : 0);
  set(root, "outofplace", algorithm.in_place ? 0 : 1);
  if (algorithm.least) set(root, "minBytes", algorithm.least->count());
  if (algorithm.most) set(root, "maxBytes", algorithm.most->count());
  for (std::size_t g = 0; g < algorithm.gpus.size(); ++g) {
    const MscclGpu& gpu = algorithm.gpus[g];
    pugi::xml_node of_gpu = root.append_child("gpu");
    set(of_gpu, "id", static_cast<long long>(g));
    set(of_gpu, "i_chunks", gpu.input_chunks);
    set(of_gpu, "o_chunks", gpu.output_chunks);
    set(of_gpu, "s_chunks", gpu.scratch_chunks);
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      const MscclBlock& block = gpu.blocks[b];
      pugi::xml_node tb = of_gpu.append_child("tb");
      set(tb, "id", static_cast<long long>(b));
      set(tb, "send", block.send);
      set(tb, "recv", block.receive);
      set(tb, "chan", block.channel);
      for (std::size_t s = 0; s < block.steps.size(); ++s) add_step(tb, block.steps[s], s);
    }
  }
  std::ostringstream text;
  document.save(text, "  ", pugi::format_indent | pugi::format_no_declaration);
  return std::move(text).str();
}

}  // namespace podsim
