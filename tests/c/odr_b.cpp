// The other one.
#include <stair.hpp>

const char* missing_model() {
  const auto model = stair::model::try_open("/nonexistent/file");
  return model ? "" : model.error().name();
}
