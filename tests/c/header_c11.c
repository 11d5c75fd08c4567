/* stair.h on its own, as C11. What it promises binary users is pinned here: numbers, sizes and
 * offsets. A failure means that the ABI has changed: then STAIR_ABI_VERSION must change too. */
#include <stair.h>

#define IS(constant, value) _Static_assert((constant) == (value), #constant)
#define SIZE(type, value) _Static_assert(sizeof(type) == (value), #type)
#define AT(type, field, value) _Static_assert(offsetof(type, field) == (value), #type "." #field)

IS(STAIR_ABI_VERSION, 1);
IS(STAIR_NTS, SIZE_MAX);
IS(STAIR_NONE, UINT32_MAX);
IS(sizeof(stair_status), 4);

IS(STAIR_OK, 0);
IS(STAIR_ERR_INVALID_ARGUMENT, 100);
IS(STAIR_ERR_NULL_POINTER, 101);
IS(STAIR_ERR_INVALID_UTF8, 102);
IS(STAIR_ERR_NUL_IN_QUESTION, 103);
IS(STAIR_ERR_EMPTY_QUESTION, 104);
IS(STAIR_ERR_QUESTION_TOO_LONG, 105);
IS(STAIR_ERR_INVALID_K, 106);
IS(STAIR_ERR_STRUCT_SIZE, 107);
IS(STAIR_ERR_INVALID_HANDLE, 108);
IS(STAIR_ERR_IO, 200);
IS(STAIR_ERR_NOT_FOUND, 201);
IS(STAIR_ERR_PERMISSION_DENIED, 202);
IS(STAIR_ERR_NOT_A_FILE, 203);
IS(STAIR_ERR_DOCUMENT, 300);
IS(STAIR_ERR_NO_HEADINGS, 301);
IS(STAIR_ERR_TEMPLATE, 302);
IS(STAIR_ERR_TOKENIZER, 303);
IS(STAIR_ERR_UNSTABLE_BOUNDARY, 304);
IS(STAIR_ERR_TOO_LARGE, 305);
IS(STAIR_ERR_NOT_AN_INDEX, 310);
IS(STAIR_ERR_INDEX_VERSION, 311);
IS(STAIR_ERR_INDEX_CORRUPT, 312);
IS(STAIR_ERR_QUESTIONS, 320);
IS(STAIR_ERR_NOT_A_MODEL, 400);
IS(STAIR_ERR_MODEL_CORRUPT, 401);
IS(STAIR_ERR_MODEL_ARCHITECTURE, 402);
IS(STAIR_ERR_MODEL_VOCABULARY, 403);
IS(STAIR_ERR_MODEL_LOAD, 404);
IS(STAIR_ERR_VOCABULARY_MISMATCH, 405);
IS(STAIR_ERR_BACKEND, 406);
IS(STAIR_ERR_ADAPTER, 407);
IS(STAIR_ERR_CONTEXT_TOO_SMALL, 500);
IS(STAIR_ERR_CANCELLED, 501);
IS(STAIR_ERR_TIMEOUT, 502);
IS(STAIR_ERR_OUT_OF_MEMORY, 503);
IS(STAIR_ERR_DECODE, 504);
IS(STAIR_ERR_CLOSED, 505);
IS(STAIR_ERR_INTERNAL, 900);
IS(STAIR_ERR_PANIC, 901);

IS(STAIR_INDEX_COPY, 1);
IS(STAIR_FORMAT_MARKDOWN, 1);
IS(STAIR_FORMAT_TOC_JSON, 2);
IS(STAIR_KV_F16, 1);
IS(STAIR_KV_Q8_0, 2);
IS(STAIR_KV_F32, 3);
IS(STAIR_SCORING_EXACT, 0);
IS(STAIR_SCORING_LOCAL, 1);
IS(STAIR_LOG_ERROR, 1);
IS(STAIR_LOG_WARN, 2);
IS(STAIR_LOG_INFO, 3);
IS(STAIR_LOG_DEBUG, 4);

/* Sizes and offsets with 64-bit pointers. */
#if UINTPTR_MAX == UINT64_MAX
SIZE(stair_model_options, 24);
AT(stair_model_options, struct_size, 0);
AT(stair_model_options, gpu_layers, 4);
AT(stair_model_options, disable_mmap, 8);
AT(stair_model_options, vocabulary_only, 12);
AT(stair_model_options, context_memory, 16);

SIZE(stair_model_info, 56);
AT(stair_model_info, struct_size, 0);
AT(stair_model_info, vocab_size, 4);
AT(stair_model_info, context_length, 8);
AT(stair_model_info, reserved, 12);
AT(stair_model_info, parameters, 16);
AT(stair_model_info, bytes, 24);
AT(stair_model_info, fingerprint, 32);
AT(stair_model_info, architecture, 40);
AT(stair_model_info, architecture_len, 48);

SIZE(stair_index_info, 72);
AT(stair_index_info, struct_size, 0);
AT(stair_index_info, sections, 4);
AT(stair_index_info, leaves, 8);
AT(stair_index_info, trie_nodes, 12);
AT(stair_index_info, longest_title, 16);
AT(stair_index_info, prefix_tokens, 20);
AT(stair_index_info, vocab_size, 24);
AT(stair_index_info, has_text, 28);
AT(stair_index_info, fingerprint, 32);
AT(stair_index_info, bytes, 40);
AT(stair_index_info, title, 48);
AT(stair_index_info, title_len, 56);
AT(stair_index_info, version_major, 64);
AT(stair_index_info, version_minor, 68);

SIZE(stair_section, 88);
AT(stair_section, struct_size, 0);
AT(stair_section, id, 4);
AT(stair_section, parent, 8);
AT(stair_section, depth, 12);
AT(stair_section, leaf, 16);
AT(stair_section, page, 20);
AT(stair_section, span_start, 24);
AT(stair_section, span_end, 32);
AT(stair_section, number, 40);
AT(stair_section, number_len, 48);
AT(stair_section, title, 56);
AT(stair_section, title_len, 64);
AT(stair_section, text, 72);
AT(stair_section, text_len, 80);

SIZE(stair_build_options, 48);
AT(stair_build_options, struct_size, 0);
AT(stair_build_options, format, 4);
AT(stair_build_options, omit_text, 8);
AT(stair_build_options, keep_front_matter, 12);
AT(stair_build_options, questions, 16);
AT(stair_build_options, questions_len, 24);
AT(stair_build_options, split, 32);
AT(stair_build_options, split_len, 40);

SIZE(stair_retriever_options, 48);
AT(stair_retriever_options, struct_size, 0);
AT(stair_retriever_options, threads, 4);
AT(stair_retriever_options, context_tokens, 8);
AT(stair_retriever_options, max_question_tokens, 12);
AT(stair_retriever_options, max_parallel, 16);
AT(stair_retriever_options, kv_type, 20);
AT(stair_retriever_options, deterministic, 24);
AT(stair_retriever_options, max_waiting, 28);
AT(stair_retriever_options, cache_dir, 32);
AT(stair_retriever_options, cache_dir_len, 40);

SIZE(stair_retrieve_options, 20);
AT(stair_retrieve_options, struct_size, 0);
AT(stair_retrieve_options, k, 4);
AT(stair_retrieve_options, scoring, 8);
AT(stair_retrieve_options, timeout_ms, 12);
AT(stair_retrieve_options, lexical_weight, 16);

SIZE(stair_hit, 104);
AT(stair_hit, struct_size, 0);
AT(stair_hit, section, 4);
AT(stair_hit, page, 8);
AT(stair_hit, path_len, 12);
AT(stair_hit, span_start, 16);
AT(stair_hit, span_end, 24);
AT(stair_hit, log_prob, 32);
AT(stair_hit, number, 40);
AT(stair_hit, number_len, 48);
AT(stair_hit, title, 56);
AT(stair_hit, title_len, 64);
AT(stair_hit, text, 72);
AT(stair_hit, text_len, 80);
AT(stair_hit, score, 88);
AT(stair_hit, lexical, 96);

SIZE(stair_stats, 56);
AT(stair_stats, struct_size, 0);
AT(stair_stats, decodes, 4);
AT(stair_stats, question_tokens, 8);
AT(stair_stats, search_tokens, 12);
AT(stair_stats, prefix_tokens, 16);
AT(stair_stats, restored_tokens, 20);
AT(stair_stats, legal_mass, 24);
AT(stair_stats, prefill_ms, 32);
AT(stair_stats, search_ms, 40);
AT(stair_stats, total_ms, 48);

#endif

int main(void)
{
    return stair_abi_version() == STAIR_ABI_VERSION ? 0 : 1;
}
