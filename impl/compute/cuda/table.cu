// The plug-in's one function (cuda_plugin.h).
#include <cuda_runtime.h>

#include "compute/cuda/operations.h"
#include "compute/cuda/ranges.h"
#include "compute/cuda/runtime.h"

#define SHARDREC_TEXT(x) SHARDREC_TEXT_OF(x)
#define SHARDREC_TEXT_OF(x) #x

namespace shardrec::compute::cuda {

shardrec_cuda_error load_kernels() {
  for (const auto load :
       {load_lookups,       load_initial_rows,   load_bag_index,       load_row_copies,
        load_row_groups,    load_held_bags,      load_assembly,        load_gradient_packing,
        load_node_sums,     load_row_codes,      load_weight_products, load_gradient_rows,
        load_row_searches,  load_kept_gradients, load_batch,           load_received,
        load_slots,         load_slot_sums,      load_row_totals,      load_routing,
        load_row_operations}) {
    const shardrec_cuda_error error = load();
    if (error != SHARDREC_CUDA_OK) return error;
  }
  return SHARDREC_CUDA_OK;
}

}  // namespace shardrec::compute::cuda

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_cuda_plugin(shardrec_cuda_table* table) {
  const bool same = table->size == sizeof *table && table->abi == SHARDREC_CUDA_ABI;
  table->size = sizeof *table;
  table->abi = SHARDREC_CUDA_ABI;
  if (!same) return SHARDREC_CUDA_ABI_MISMATCH;
#if defined(__CUDACC__)
  table->library =
      "CUDA " SHARDREC_TEXT(__CUDACC_VER_MAJOR__) "." SHARDREC_TEXT(__CUDACC_VER_MINOR__);
#else
  table->library = "CUDA on the CPU";
#endif
  shardrec::compute::cuda::add_runtime(*table);
  table->begin_range = shardrec::compute::cuda::begin_range;
  table->end_range = shardrec::compute::cuda::end_range;
  table->look_up = shardrec::compute::cuda::look_up;
  table->index_bags = shardrec::compute::cuda::index_bags;
  table->copy_rows = shardrec::compute::cuda::copy_rows;
  table->group_rows = shardrec::compute::cuda::group_rows;
  table->locate_gradients = shardrec::compute::cuda::locate_gradients;
  table->number_occurrences = shardrec::compute::cuda::number_occurrences;
  table->find_rows = shardrec::compute::cuda::find_rows;
  table->find_new_rows = shardrec::compute::cuda::find_new_rows;
  table->add_kept = shardrec::compute::cuda::add_kept;
  table->mark_bag_bits = shardrec::compute::cuda::mark_bag_bits;
  table->index_held_bags = shardrec::compute::cuda::index_held_bags;
  table->add_chunk_sums = shardrec::compute::cuda::add_chunk_sums;
  table->add_up_rows = shardrec::compute::cuda::add_up_rows;
  table->find_sequence_rows = shardrec::compute::cuda::find_sequence_rows;
  table->copy_sequence_rows = shardrec::compute::cuda::copy_sequence_rows;
  table->pack_output_gradients = shardrec::compute::cuda::pack_output_gradients;
  table->count_present = shardrec::compute::cuda::count_present;
  table->encode_rows = shardrec::compute::cuda::encode_rows;
  table->decode_rows = shardrec::compute::cuda::decode_rows;
  table->take_products = shardrec::compute::cuda::take_products;
  table->mark_product_parts = shardrec::compute::cuda::mark_product_parts;
  table->sum_products = shardrec::compute::cuda::sum_products;
  table->pack_slots = shardrec::compute::cuda::pack_slots;
  table->check_slots = shardrec::compute::cuda::check_slots;
  table->unpack_slots = shardrec::compute::cuda::unpack_slots;
  table->count_slot_sums = shardrec::compute::cuda::count_slot_sums;
  table->add_slots = shardrec::compute::cuda::add_slots;
  table->add_row_totals = shardrec::compute::cuda::add_row_totals;
  table->open_rows = shardrec::compute::cuda::open_rows;
  table->work_on_rows = shardrec::compute::cuda::work_on_rows;
  table->fill_rows = shardrec::compute::cuda::fill_rows;
  table->read_lengths = shardrec::compute::cuda::read_lengths;
  table->sort_samples = shardrec::compute::cuda::sort_samples;
  table->check_bags = shardrec::compute::cuda::check_bags;
  table->expand_ids = shardrec::compute::cuda::expand_ids;
  table->count_ids = shardrec::compute::cuda::count_ids;
  table->write_ids = shardrec::compute::cuda::write_ids;
  return SHARDREC_CUDA_FILLED;
}
