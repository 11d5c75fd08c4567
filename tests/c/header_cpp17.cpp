// stair.h on its own, as C++17, and twice. The functions are declared once more below, and a
// compiler refuses two declarations that differ: the types of the functions are pinned here. A
// failure means that the ABI has changed, and then STAIR_ABI_VERSION must change too.
#include <stair.h>
#include <stair.h>

extern "C" {

uint32_t stair_abi_version();
const char* stair_version();
const char* stair_build_info();
const char* stair_status_name(stair_status status);

stair_status stair_error_code(const stair_error* error);
const char* stair_error_message(const stair_error* error, size_t* len);
void stair_error_free(stair_error* error);

stair_status stair_model_options_init(stair_model_options* options, size_t size);
stair_status stair_model_open(const char* path, size_t path_len, const stair_model_options* options,
                              const stair_cancel* cancel, stair_model** out, stair_error** error);
stair_status stair_model_get_info(const stair_model* model, stair_model_info* info,
                                  stair_error** error);
void stair_model_free(stair_model* model);

stair_status stair_build_options_init(stair_build_options* options, size_t size);
stair_status stair_index_open(const char* path, size_t path_len, uint32_t flags, stair_index** out,
                              stair_error** error);
stair_status stair_index_open_buffer(const uint8_t* data, size_t len, stair_index** out,
                                     stair_error** error);
stair_status stair_index_build(const stair_model* model, const char* document, size_t document_len,
                               const char* title, size_t title_len,
                               const stair_build_options* options, stair_index** out,
                               stair_error** error);
stair_status stair_index_save(const stair_index* index, const char* path, size_t path_len,
                              stair_error** error);
stair_status stair_index_peek(const char* path, size_t path_len, stair_index_info* info,
                              stair_error** error);
stair_status stair_index_get_info(const stair_index* index, stair_index_info* info,
                                  stair_error** error);
stair_status stair_index_section(const stair_index* index, uint32_t id, stair_section* section,
                                 stair_error** error);
void stair_index_free(stair_index* index);

stair_status stair_retriever_options_init(stair_retriever_options* options, size_t size);
stair_status stair_retriever_new(const stair_model* model, const stair_index* index,
                                 const stair_retriever_options* options, stair_retriever** out,
                                 stair_error** error);
stair_status stair_retriever_warm(const stair_retriever* retriever, const stair_cancel* cancel,
                                  stair_error** error);
void stair_retriever_free(stair_retriever* retriever);

stair_status stair_retrieve_options_init(stair_retrieve_options* options, size_t size);
stair_status stair_retrieve(const stair_retriever* retriever, const char* question,
                            size_t question_len, const stair_retrieve_options* options,
                            const stair_cancel* cancel, stair_results** out, stair_error** error);

size_t stair_results_count(const stair_results* results);
stair_status stair_results_get(const stair_results* results, size_t i, stair_hit* hit,
                               stair_error** error);
stair_status stair_results_path(const stair_results* results, size_t i, size_t entry,
                                const char** text, size_t* len, stair_error** error);
stair_status stair_results_stats(const stair_results* results, stair_stats* stats,
                                 stair_error** error);
void stair_results_free(stair_results* results);

stair_cancel* stair_cancel_new();
void stair_cancel_trigger(const stair_cancel* cancel);
int32_t stair_cancel_triggered(const stair_cancel* cancel);
void stair_cancel_free(stair_cancel* cancel);

void stair_log_set(stair_log_fn callback, void* userdata, int32_t max_level);

typedef void (*stair_log_fn)(int32_t level, const char* message, size_t len, void* userdata);
}

int main() { return stair_abi_version() == STAIR_ABI_VERSION ? 0 : 1; }
