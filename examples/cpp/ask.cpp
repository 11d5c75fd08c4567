// Asks a document: which of its sections answer these questions?
//
//     c++ -std=c++17 ask.cpp -o ask $(pkg-config --cflags --libs stair) -pthread
//     ./ask MODEL.gguf INDEX.stair "How long do I have to hand in a receipt?"
//
// With --callers N, N threads then ask everything once more, all at the same time and on the one
// retriever, and compare their answers with the first ones.
#include <algorithm>
#include <cstdlib>
#include <future>
#include <iomanip>
#include <iostream>
#include <stair.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace {

//   1. 4.2 Claim window  (4 Travel and expenses > 4.2 Claim window)  -0.312
void print(const stair::results& results) {
  int rank = 0;
  for (const stair::hit& hit : results) {
    std::cout << "  " << ++rank << ". " << hit.identifier() << "  (";
    for (std::size_t i = 0; i < hit.path.size(); ++i) {
      std::cout << (i > 0 ? " > " : "") << hit.path[i];
    }
    std::cout << ")  " << std::fixed << std::setprecision(3) << hit.score << '\n';
  }
  std::cout << '\n';
}

// Whether two answers name the same sections with exactly the same log-probabilities.
bool same(const stair::results& a, const stair::results& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const stair::hit& x, const stair::hit& y) {
                      return x.section == y.section && x.log_prob == y.log_prob;
                    });
}

// The number that `text` is, or 0.
std::size_t number(const std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits && text.size() < 6 ? std::stoul(text) : 0;
}

int ask(const std::string& model_path, const std::string& index_path, std::size_t callers,
        const std::vector<std::string>& questions) {
  const stair::model model = stair::model::open(model_path);
  const stair::index index = stair::index::open(index_path);
  stair::retriever_options deterministic;
  deterministic.deterministic = true;  // the same bits whatever else is asked at the time
  const stair::retriever retriever = stair::retriever::make(model, index, deterministic);

  std::vector<stair::results> answers;
  for (const std::string& question : questions) {
    answers.push_back(retriever.retrieve(question));
    std::cout << question << '\n';
    print(answers.back());
  }
  if (callers == 0) return EXIT_SUCCESS;

  // A retriever takes questions from any number of threads.
  std::vector<std::future<std::size_t>> threads;
  for (std::size_t i = 0; i < callers; ++i) {
    threads.push_back(std::async(std::launch::async, [&] {
      std::size_t differ = 0;
      for (std::size_t q = 0; q < questions.size(); ++q) {
        if (!same(retriever.retrieve(questions[q]), answers[q])) ++differ;
      }
      return differ;
    }));
  }
  std::size_t differ = 0;
  for (std::future<std::size_t>& thread : threads) differ += thread.get();
  std::cout << callers << " callers, " << questions.size() << " answers each: ";
  if (differ > 0) {
    std::cout << differ << " differ\n";
    return EXIT_FAILURE;
  }
  std::cout << "all the same\n";
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::size_t callers = 0;
  bool usable = arguments.size() >= 3;
  if (usable && arguments[2] == "--callers") {
    callers = arguments.size() > 4 ? number(arguments[3]) : 0;
    usable = callers > 0;
    if (usable) arguments.erase(arguments.begin() + 2, arguments.begin() + 4);
  }
  if (!usable) {
    std::cerr << "usage: ask MODEL.gguf INDEX.stair [--callers N] QUESTION...\n";
    return 2;
  }
  try {
    return ask(arguments[0], arguments[1], callers, {arguments.begin() + 2, arguments.end()});
  } catch (const stair::error& error) {
    std::cerr << "error: " << error.name() << ": " << error.what() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
  }
  return EXIT_FAILURE;
}
