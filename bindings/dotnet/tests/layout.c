/* Prints the layout of stair.h, for Tests.cs to compare with the structs of Native.cs. */
#include <stddef.h>
#include <stdio.h>

#include "stair.h"

#define SIZE(type) printf(#type " %zu\n", sizeof(type))
#define FIELD(type, field) printf(#type "." #field " %zu\n", offsetof(type, field))

int main(void)
{
    SIZE(stair_model_options);
    FIELD(stair_model_options, struct_size);
    FIELD(stair_model_options, gpu_layers);
    FIELD(stair_model_options, disable_mmap);
    FIELD(stair_model_options, vocabulary_only);
    FIELD(stair_model_options, context_memory);

    SIZE(stair_model_info);
    FIELD(stair_model_info, struct_size);
    FIELD(stair_model_info, vocab_size);
    FIELD(stair_model_info, context_length);
    FIELD(stair_model_info, reserved);
    FIELD(stair_model_info, parameters);
    FIELD(stair_model_info, bytes);
    FIELD(stair_model_info, fingerprint);
    FIELD(stair_model_info, architecture);
    FIELD(stair_model_info, architecture_len);

    SIZE(stair_index_info);
    FIELD(stair_index_info, struct_size);
    FIELD(stair_index_info, sections);
    FIELD(stair_index_info, leaves);
    FIELD(stair_index_info, trie_nodes);
    FIELD(stair_index_info, longest_title);
    FIELD(stair_index_info, prefix_tokens);
    FIELD(stair_index_info, vocab_size);
    FIELD(stair_index_info, has_text);
    FIELD(stair_index_info, fingerprint);
    FIELD(stair_index_info, bytes);
    FIELD(stair_index_info, title);
    FIELD(stair_index_info, title_len);
    FIELD(stair_index_info, version_major);
    FIELD(stair_index_info, version_minor);

    SIZE(stair_section);
    FIELD(stair_section, struct_size);
    FIELD(stair_section, id);
    FIELD(stair_section, parent);
    FIELD(stair_section, depth);
    FIELD(stair_section, leaf);
    FIELD(stair_section, page);
    FIELD(stair_section, span_start);
    FIELD(stair_section, span_end);
    FIELD(stair_section, number);
    FIELD(stair_section, number_len);
    FIELD(stair_section, title);
    FIELD(stair_section, title_len);
    FIELD(stair_section, text);
    FIELD(stair_section, text_len);

    SIZE(stair_build_options);
    FIELD(stair_build_options, struct_size);
    FIELD(stair_build_options, format);
    FIELD(stair_build_options, omit_text);
    FIELD(stair_build_options, keep_front_matter);
    FIELD(stair_build_options, questions);
    FIELD(stair_build_options, questions_len);
    FIELD(stair_build_options, split);
    FIELD(stair_build_options, split_len);

    SIZE(stair_retriever_options);
    FIELD(stair_retriever_options, struct_size);
    FIELD(stair_retriever_options, threads);
    FIELD(stair_retriever_options, context_tokens);
    FIELD(stair_retriever_options, max_question_tokens);
    FIELD(stair_retriever_options, max_parallel);
    FIELD(stair_retriever_options, kv_type);
    FIELD(stair_retriever_options, deterministic);
    FIELD(stair_retriever_options, max_waiting);
    FIELD(stair_retriever_options, cache_dir);
    FIELD(stair_retriever_options, cache_dir_len);

    SIZE(stair_retrieve_options);
    FIELD(stair_retrieve_options, struct_size);
    FIELD(stair_retrieve_options, k);
    FIELD(stair_retrieve_options, scoring);
    FIELD(stair_retrieve_options, timeout_ms);
    FIELD(stair_retrieve_options, lexical_weight);

    SIZE(stair_hit);
    FIELD(stair_hit, struct_size);
    FIELD(stair_hit, section);
    FIELD(stair_hit, page);
    FIELD(stair_hit, path_len);
    FIELD(stair_hit, span_start);
    FIELD(stair_hit, span_end);
    FIELD(stair_hit, log_prob);
    FIELD(stair_hit, number);
    FIELD(stair_hit, number_len);
    FIELD(stair_hit, title);
    FIELD(stair_hit, title_len);
    FIELD(stair_hit, text);
    FIELD(stair_hit, text_len);
    FIELD(stair_hit, score);
    FIELD(stair_hit, lexical);

    SIZE(stair_stats);
    FIELD(stair_stats, struct_size);
    FIELD(stair_stats, decodes);
    FIELD(stair_stats, question_tokens);
    FIELD(stair_stats, search_tokens);
    FIELD(stair_stats, prefix_tokens);
    FIELD(stair_stats, restored_tokens);
    FIELD(stair_stats, legal_mass);
    FIELD(stair_stats, prefill_ms);
    FIELD(stair_stats, search_ms);
    FIELD(stair_stats, total_ms);
    return 0;
}
