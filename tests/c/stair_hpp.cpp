// All of stair.hpp, with exceptions and without, with std::expected and without. Arguments:
// MODEL.gguf INDEX.stair.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stair.hpp>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

unsigned checks = 0, failures = 0;

#define CHECK(...) check(__LINE__, #__VA_ARGS__, static_cast<bool>(__VA_ARGS__))

void check(int line, const char* what, bool good) {
  ++checks;
  if (good) return;
  ++failures;
  std::fprintf(stderr, "line %d: not so: %s\n", line, what);
}

/// The value of a result that must have one.
template <class T>
T take(stair::result<T> result, int line = __builtin_LINE()) {
  check(line, "has a value", result.has_value());
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", result.error().name(), result.error().what());
    std::exit(1);
  }
  return *std::move(result);
}

/// Whether a result is this error.
template <class T>
bool is(const stair::result<T>& result, stair::errc code) {
  return !result && result.error().code() == code && *result.error().what() != '\0';
}

template <class T>
constexpr bool move_only = std::is_nothrow_move_constructible_v<T> &&
                           std::is_nothrow_move_assignable_v<T> && !std::is_copy_constructible_v<T>;
static_assert(move_only<stair::model> && move_only<stair::index> && move_only<stair::retriever> &&
              move_only<stair::results> && move_only<stair::cancel_source>);
static_assert(std::is_copy_constructible_v<stair::cancel_token>);
static_assert(std::is_base_of_v<std::runtime_error, stair::error>);

const char question[] = "How long do I have to hand in a receipt?";
const char document[] = "# Handbook\n\n## Leave\n\nRest.\n\n## Pay\n\nMoney.\n";
const char longer[] =
    "# Handbook\n\n## 1 Leave\n\nRest.\n\n## 2 Travel\n\n### 2.1 Claim window\n\nDays.\n\n"
    "### 2.2 Limits\n\nMoney.\n\n## Glossary\n\nWords.\n";

void versions() {
  CHECK(stair::version() == stair_version());
  CHECK(!stair::build_info().empty());
  CHECK(std::string_view(stair::name(stair::errc::invalid_k)) == "INVALID_K");
}

void model(const std::string& path, stair::model& model) {
  const stair::model_info info = take(model.try_info());
  CHECK(info.vocab_size > 0 && info.parameters > 0 && !info.architecture.empty());
  CHECK(is(stair::model::try_open(""), stair::errc::not_found) ||
        is(stair::model::try_open({}), stair::errc::invalid_argument));
  CHECK(is(stair::model::try_open("/nonexistent/file"), stair::errc::not_found));

  stair::cancel_source source;
  const stair::cancel_token token = source.token();
  CHECK(!source.cancelled() && !token.cancelled() && !stair::cancel_token().cancelled());
  source.cancel();
  CHECK(source.cancelled() && token.cancelled());
  CHECK(is(stair::model::try_open(path, {}, token), stair::errc::cancelled));

  stair::model moved = std::move(model);
  CHECK(is(model.try_info(), stair::errc::null_pointer));
  CHECK(take(moved.try_info()).architecture == info.architecture);
  model = std::move(moved);
}

void index(const std::string& path, const stair::index& index) {
  const stair::index_info info = take(index.try_info());
  const stair::index_info peeked = take(stair::index::try_peek(path));
  CHECK(info.sections > 0 && info.leaves > 0 && !info.title.empty());
  CHECK(peeked.sections == info.sections && peeked.title.empty());

  const std::vector<stair::section> sections = take(index.try_sections());
  CHECK(sections.size() == info.sections);
  std::uint32_t leaves = 0;
  for (const stair::section& section : sections) {
    CHECK(section.id == static_cast<std::size_t>(&section - sections.data()));
    CHECK(!section.title.empty() && section.span_start <= section.span_end);
    CHECK(section.parent ? *section.parent < section.id : section.depth == 0);
    CHECK(section.text.has_value() <= info.has_text);
    leaves += section.leaf;
  }
  CHECK(leaves == info.leaves);
  CHECK(is(index.try_section(info.sections), stair::errc::invalid_argument));

  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const stair::index copy = take(stair::index::try_open_buffer(bytes.data(), bytes.size()));
  CHECK(take(copy.try_info()).title == info.title);
  CHECK(take(copy.try_section(0)).title == sections[0].title);
  CHECK(take(take(stair::index::try_open(path, stair::access::copied)).try_info()).bytes ==
        info.bytes);
  CHECK(is(stair::index::try_open_buffer(nullptr, 0), stair::errc::not_an_index));
  CHECK(is(stair::index::try_open_buffer(nullptr, 1), stair::errc::null_pointer));
}

void building(const stair::model& model, const std::string& path) {
  stair::build_options options;
  options.title = "Given";
  options.keep_text = false;
  const stair::index built = take(stair::index::try_build(model, document, options));
  const stair::result<void> done = built.try_save(path);
  CHECK(done.has_value());
  *done;
  const stair::index saved = take(stair::index::try_open(path));
  const stair::index_info info = take(saved.try_info());
  CHECK(info.title == "Given" && info.leaves == 2 && !info.has_text);
  CHECK(stair::index::try_peek(path).value_or(stair::index_info{}).leaves == 2);
  CHECK(stair::index::try_peek("/nonexistent/file").value_or(stair::index_info{}).leaves == 0);
  CHECK(!take(saved.try_section(0)).text);
  CHECK(is(built.try_save("/nonexistent/file"), stair::errc::not_found));
  CHECK(is(stair::index::try_build(model, "Text."), stair::errc::no_headings));
  CHECK(!stair::index::try_build(model, {}));
  options.format = stair::document_format::toc_json;
  CHECK(is(stair::index::try_build(model, document, options), stair::errc::document));

  // Two leaves: the default k gives both, and asking for three is an error.
  const stair::retriever small = take(stair::retriever::try_make(model, saved));
  CHECK(take(small.try_retrieve("What is my pay?")).size() == 2);
  stair::retrieve_options asked;
  CHECK(take(small.try_retrieve("What is my pay?", asked)).size() == 2);
  asked.k = 3;
  CHECK(is(small.try_retrieve("What is my pay?", asked), stair::errc::invalid_k));
}

void known_questions(const stair::model& model) {
  stair::build_options options;
  options.questions =
      R"({"id": 1, "query": "Where do zebras go?", "section": "2 Pay", "split": "train"})"
      "\n"
      R"({"id": 2, "query": "Zebras?", "section": "1 Leave", "split": "test"})";
  const stair::index known = take(stair::index::try_build(model, document, options));
  const stair::retriever retriever = take(stair::retriever::try_make_lexical(known));
  const stair::results found = take(retriever.try_retrieve("zebras?"));
  CHECK(found[0].title == "Pay" && found[0].score > 0 && found[1].score == 0);
  options.split = "dev";
  CHECK(is(stair::index::try_build(model, document, options), stair::errc::invalid_argument));
  options.questions = "{";
  CHECK(is(stair::index::try_build(model, document, options), stair::errc::questions));
}

void words(const stair::index& index) {
  const stair::retriever retriever = take(stair::retriever::try_make_lexical(index));
  CHECK(retriever.try_warm().has_value());
  const stair::results found = take(retriever.try_retrieve("claims and their windows"));
  CHECK(found.size() == 3 && found[0].title == "Claim window" && found[0].score > 0);
  CHECK(found[0].score == found[0].lexical && std::isnan(found[0].log_prob));
  CHECK(found[1].score == 0 && found[2].score == 0 && found[1].section < found[2].section);
  CHECK(found.stats().decodes == 0 && std::isnan(found.stats().legal_mass));
  CHECK(is(retriever.try_retrieve(" "), stair::errc::empty_question));
}

// `folder` is not there yet, or another build of this program left its file in it.
void keeps(const stair::model& model, const stair::index& index, const std::string& folder) {
  std::filesystem::remove_all(folder);
  stair::retriever_options options;
  options.deterministic = true;
  options.cache_dir = folder;
  std::vector<stair::results> found;
  for (int i = 0; i < 2; ++i) {
    const stair::retriever retriever = take(stair::retriever::try_make(model, index, options));
    found.push_back(take(retriever.try_retrieve(question)));
  }
  const stair::statistics &cold = found[0].stats(), &warm = found[1].stats();
  CHECK(cold.prefix_tokens > 0 && cold.restored_tokens == 0);
  CHECK(warm.prefix_tokens == 0 && warm.restored_tokens == cold.prefix_tokens);
  for (std::size_t i = 0; i < found[0].size(); ++i) {
    CHECK(found[0][i].section == found[1][i].section);
    CHECK(found[0][i].log_prob == found[1][i].log_prob);
  }
}

void answers(const stair::retriever& retriever, const stair::index& index) {
  CHECK(retriever.try_warm().has_value());
  stair::results found = take(retriever.try_retrieve(question));
  CHECK(found.size() == 3 && !found.empty() && found.end() - found.begin() == 3);
  CHECK(found.stats().decodes > 0 && found.stats().legal_mass <= 1.0001);
  double before = 0;
  for (const stair::hit& hit : found) {
    const stair::section section = take(index.try_section(hit.section));
    CHECK(hit.log_prob <= before && std::isfinite(hit.log_prob));
    CHECK(hit.score == hit.log_prob && std::isnan(hit.lexical));
    before = hit.log_prob;
    CHECK(section.leaf && section.title == hit.title && section.number == hit.number);
    CHECK(section.page == hit.page && section.text == hit.text);
    CHECK(section.span_start == hit.span_start && section.span_end == hit.span_end);
    CHECK(hit.path.size() == section.depth + 1);
    const std::string number(hit.number);
    CHECK(hit.identifier() == (number.empty() ? number : number + " ") + std::string(hit.title));
  }

  const stair::hit& first = found[0];
  const std::string_view title = first.title;
  const stair::results moved = std::move(found);
  CHECK(moved.size() == 3 && moved[0].title == title && moved[0].title.data() == title.data());

  stair::retrieve_options options;
  options.k = 1;
  options.scoring = stair::scoring::local;
  options.timeout = std::chrono::hours(24 * 365);
  CHECK(take(retriever.try_retrieve(question, options)).size() == 1);
  options.scoring = stair::scoring::exact;
  options.timeout = std::chrono::milliseconds(-5);
  const auto late = retriever.try_retrieve(std::string(500, 'x'), options);
  CHECK(late || is(late, stair::errc::timeout));
  options.k = 0;
  CHECK(is(retriever.try_retrieve(question, options), stair::errc::invalid_k));
  stair::retrieve_options weighted;
  weighted.lexical_weight = 2;
  for (const stair::hit& hit : take(retriever.try_retrieve("Claim window?", weighted)))
    CHECK(std::abs(hit.score - (hit.log_prob + 2 * hit.lexical)) < 1e-5 && hit.lexical >= 0);
  weighted.lexical_weight = -1;
  CHECK(is(retriever.try_retrieve(question, weighted), stair::errc::invalid_argument));
  CHECK(is(retriever.try_retrieve(""), stair::errc::empty_question));
  CHECK(is(retriever.try_retrieve({}), stair::errc::empty_question));
  CHECK(is(retriever.try_retrieve(std::string_view("a\0b", 3)), stair::errc::nul_in_question));

  stair::cancel_source source;
  source.cancel();
  CHECK(is(retriever.try_retrieve(question, {}, source.token()), stair::errc::cancelled));

  // Cancelled from another thread while it asks.
  const stair::cancel_source later;
  std::thread canceller([&] { later.cancel(); });
  stair::errc ended = stair::errc::internal;
  for (bool asking = true; asking;) {
    const auto result = retriever.try_retrieve(question, {}, later.token());
    asking = result.has_value();
    if (!asking) ended = result.error().code();
  }
  canceller.join();
  CHECK(ended == stair::errc::cancelled);
}

void logging(const std::string& path) {
  std::atomic<unsigned> lines{0};
  const auto count = [&](stair::log_level level, std::string_view message) {
    lines += level <= stair::log_level::info && message.data() != nullptr;
#ifndef STAIR_NO_EXCEPTIONS
    throw std::runtime_error("must not reach C");
#endif
  };
  CHECK(stair::try_set_log(count, stair::log_level::info).has_value());
  CHECK(stair::model::try_open(path).has_value());
  CHECK(stair::try_set_log(nullptr).has_value());
  const unsigned heard = lines;
  CHECK(heard > 0);
  CHECK(stair::model::try_open(path).has_value());
  CHECK(lines == heard);
}

#ifndef STAIR_NO_EXCEPTIONS
void throwing(const std::string& model_path, const std::string& index_path) {
  try {
    stair::model::open("/nonexistent/file");
    CHECK(false);
  } catch (const stair::error& error) {
    CHECK(error.code() == stair::errc::not_found && error.name() == std::string("NOT_FOUND"));
    CHECK(std::string(error.what()).find("/nonexistent/file") != std::string::npos);
  }
  const stair::model model = stair::model::open(model_path);
  const stair::index index = stair::index::open(index_path);
  CHECK(index.sections().size() == index.info().sections && model.info().vocab_size > 0);
  CHECK(index.section(0).id == 0 && stair::index::peek(index_path).leaves == index.info().leaves);
  const stair::retriever retriever =
      stair::retriever::make(model, stair::index::build(model, longer));
  retriever.warm();
  CHECK(stair::retriever::make_lexical(index).retrieve(question).size() == 3);
  stair::retrieve_options two;
  two.k = 2;
  CHECK(retriever.retrieve(question, two).size() == 2);
  CHECK(retriever.retrieve(question).size() == 3);
  CHECK(stair::index::build(model, document).info().leaves == 2);
  stair::set_log(nullptr);
  try {
    index.save("/nonexistent/file");
    CHECK(false);
  } catch (const std::runtime_error&) {
  }
}
#endif

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: stair_hpp MODEL.gguf INDEX.stair SCRATCH.stair\n");
    return 2;
  }
  const std::string model_path = argv[1], index_path = argv[2], scratch = argv[3];
  versions();
  {
    stair::model one = take(stair::model::try_open(model_path));
    const stair::index other = take(stair::index::try_open(index_path));
    model(model_path, one);
    index(index_path, other);
    building(one, scratch);
    const stair::index asked = take(stair::index::try_build(one, longer));
    const stair::retriever retriever = take(stair::retriever::try_make(one, asked));
    words(asked);
    known_questions(one);
    answers(retriever, asked);
    keeps(one, asked, scratch + ".cache");
    const stair::model moved = std::move(one);
    CHECK(is(stair::retriever::try_make(one, asked), stair::errc::null_pointer));
  }
  logging(model_path);
#ifndef STAIR_NO_EXCEPTIONS
  throwing(model_path, index_path);
#endif
  if (failures > 0) {
    std::fprintf(stderr, "stair_hpp: %u of %u checks failed\n", failures, checks);
    return 1;
  }
  std::printf("stair_hpp: %u checks\n", checks);
  return 0;
}
