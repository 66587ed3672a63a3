// The operations of the table (cuda_plugin.h), one file each.
#pragma once

#include "compute/cuda/cuda_plugin.h"

namespace shardrec::compute::cuda {

// Loads all kernels onto the current device: one that is loaded when it is first started may wait for
// what runs there.
shardrec_cuda_error load_kernels();
shardrec_cuda_error load_lookups();
shardrec_cuda_error load_initial_rows();
shardrec_cuda_error load_bag_index();
shardrec_cuda_error load_row_copies();
shardrec_cuda_error load_row_groups();
shardrec_cuda_error load_gradient_rows();
shardrec_cuda_error load_row_searches();
shardrec_cuda_error load_kept_gradients();
shardrec_cuda_error load_batch();
shardrec_cuda_error load_received();
shardrec_cuda_error load_held_bags();
shardrec_cuda_error load_assembly();
shardrec_cuda_error load_gradient_packing();
shardrec_cuda_error load_node_sums();
shardrec_cuda_error load_row_codes();
shardrec_cuda_error load_weight_products();
shardrec_cuda_error load_slots();
shardrec_cuda_error load_slot_sums();
shardrec_cuda_error load_row_totals();
shardrec_cuda_error load_routing();
shardrec_cuda_error load_row_operations();

shardrec_cuda_error look_up(shardrec_cuda_stream* stream, const shardrec_cuda_lookup_kind* kind,
                            const shardrec_cuda_lookup* lookups, const int64_t* first_block,
                            int32_t count, int64_t blocks);
shardrec_cuda_error fill_rows(shardrec_cuda_stream* stream, const shardrec_cuda_initial_rows* rows);
shardrec_cuda_error index_bags(shardrec_cuda_stream* stream, shardrec_cuda_bag_indexing* indexing);
shardrec_cuda_error copy_rows(shardrec_cuda_stream* stream, const shardrec_cuda_row_copy* rows);
shardrec_cuda_error group_rows(shardrec_cuda_stream* stream, shardrec_cuda_row_grouping* grouping);
shardrec_cuda_error locate_gradients(shardrec_cuda_stream* stream,
                                     const shardrec_cuda_gradient_blocks* job);
shardrec_cuda_error number_occurrences(shardrec_cuda_stream* stream,
                                       const shardrec_cuda_single_occurrences* job);
shardrec_cuda_error find_rows(shardrec_cuda_stream* stream, const shardrec_cuda_row_search* job);
shardrec_cuda_error find_new_rows(shardrec_cuda_stream* stream, shardrec_cuda_kept_addition* job);
shardrec_cuda_error add_kept(shardrec_cuda_stream* stream, const shardrec_cuda_kept_addition* job);
shardrec_cuda_error read_lengths(shardrec_cuda_stream* stream,
                                 const shardrec_cuda_length_reading* reading);
shardrec_cuda_error sort_samples(shardrec_cuda_stream* stream,
                                 shardrec_cuda_sample_sorting* sorting);
shardrec_cuda_error check_bags(shardrec_cuda_stream* stream, const shardrec_cuda_bag_check* check);
shardrec_cuda_error expand_ids(shardrec_cuda_stream* stream,
                               const shardrec_cuda_id_expansion* expansion);
shardrec_cuda_error mark_bag_bits(shardrec_cuda_stream* stream,
                                  const shardrec_cuda_bag_bits* blocks, const int64_t* first_word,
                                  int32_t count, int64_t words);
shardrec_cuda_error index_held_bags(shardrec_cuda_stream* stream,
                                    const shardrec_cuda_held_bags* lists,
                                    const int64_t* first_chunk, int32_t count, int64_t chunks);
shardrec_cuda_error add_chunk_sums(shardrec_cuda_stream* stream,
                                   const shardrec_cuda_held_bags* lists, int32_t count,
                                   int64_t* rows);
shardrec_cuda_error add_up_rows(shardrec_cuda_stream* stream, int32_t vectors,
                                const shardrec_cuda_row_sum* jobs, const int64_t* first_block,
                                int32_t count, int64_t blocks);
shardrec_cuda_error find_sequence_rows(shardrec_cuda_stream* stream,
                                       const shardrec_cuda_sequence* jobs,
                                       const int64_t* first_chunk, int32_t count, int64_t chunks);
shardrec_cuda_error copy_sequence_rows(shardrec_cuda_stream* stream, int32_t vectors,
                                       const shardrec_cuda_sequence* jobs,
                                       const int64_t* first_block, int32_t count, int64_t blocks);
shardrec_cuda_error pack_output_gradients(shardrec_cuda_stream* stream, int32_t element,
                                          int32_t vectors, const shardrec_cuda_gradients* jobs,
                                          const int64_t* first_block, int32_t count,
                                          int64_t blocks);
shardrec_cuda_error count_present(shardrec_cuda_stream* stream,
                                  const shardrec_cuda_present_words* unions, int32_t count,
                                  int64_t* rows);
shardrec_cuda_error encode_rows(shardrec_cuda_stream* stream,
                                const shardrec_cuda_row_coding_kind* kind,
                                const shardrec_cuda_row_encoding* jobs, const int64_t* first_block,
                                int32_t count, int64_t blocks);
shardrec_cuda_error decode_rows(shardrec_cuda_stream* stream,
                                const shardrec_cuda_row_coding_kind* kind,
                                const shardrec_cuda_row_decoding* jobs, const int64_t* first_block,
                                int32_t count, int64_t blocks);
shardrec_cuda_error take_products(shardrec_cuda_stream* stream, int32_t element, int32_t vectors,
                                  const shardrec_cuda_weight_products* jobs,
                                  const int64_t* first_block, int32_t count, int64_t blocks);
shardrec_cuda_error mark_product_parts(shardrec_cuda_stream* stream,
                                       const shardrec_cuda_weight_gradients* jobs,
                                       const int64_t* first_word, int32_t count, int64_t words);
shardrec_cuda_error sum_products(shardrec_cuda_stream* stream,
                                 const shardrec_cuda_weight_gradients* jobs,
                                 const int64_t* first_block, int32_t count, int64_t blocks);
shardrec_cuda_error pack_slots(shardrec_cuda_stream* stream,
                               const shardrec_cuda_slot_packings* job);
shardrec_cuda_error check_slots(shardrec_cuda_stream* stream, const shardrec_cuda_slot_check* job);
shardrec_cuda_error unpack_slots(shardrec_cuda_stream* stream, shardrec_cuda_slot_unpackings* job);
shardrec_cuda_error count_slot_sums(shardrec_cuda_stream* stream,
                                    const shardrec_cuda_slot_sums* job);
shardrec_cuda_error add_slots(shardrec_cuda_stream* stream, shardrec_cuda_slot_sums* job);
shardrec_cuda_error add_row_totals(shardrec_cuda_stream* stream,
                                   const shardrec_cuda_row_totals* job);
shardrec_cuda_error count_ids(shardrec_cuda_stream* stream, shardrec_cuda_id_routing* routing);
shardrec_cuda_error write_ids(shardrec_cuda_stream* stream,
                              const shardrec_cuda_id_routing* routing);
shardrec_cuda_error open_rows(shardrec_cuda_stream* stream,
                              const shardrec_cuda_row_opening* opening);
shardrec_cuda_error work_on_rows(shardrec_cuda_stream* stream, const shardrec_cuda_row_kind* kind,
                                 const shardrec_cuda_row_job* jobs, const int64_t* first_block,
                                 int32_t count, int64_t blocks);

}  // namespace shardrec::compute::cuda
