#include "bind_state.hpp"

#include <stdexcept>
#include <string>

#include "arrays.hpp"
#include "state/state_arrays.hpp"

namespace onlineforest::bindings {

namespace {

// Called between two arrays; each takes a second at most.
void heed_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Reads arrays from a dictionary by name.
class DictSource {
 public:
  explicit DictSource(const nb::dict& dict) : dict_(dict) {}

  template <class T>
  std::span<const T> get(const std::string& name) {
    heed_signals();
    InArray<T, 1> array;
    if (!dict_.contains(name.c_str()) || !nb::try_cast(dict_[name.c_str()], array, /*convert=*/false)) {
      throw std::invalid_argument("not the state of a forest: '" + name + "' is missing or of another type");
    }
    return span_of(array);  // the dictionary keeps the array alive
  }

 private:
  const nb::dict& dict_;
};

}  // namespace

template <class Forest>
nb::dict state_to_dict(ForestState<Forest> state) {
  nb::dict dict;
  write_state(std::move(state), [&dict]<class T>(const std::string& name, std::vector<T> numbers) {
    heed_signals();
    dict[name.c_str()] = to_array(std::move(numbers));
  });
  return dict;
}

template <class Forest>
ForestState<Forest> state_from_dict(const nb::dict& dict) {
  DictSource source(dict);
  return read_state<Forest>(source);
}

template nb::dict state_to_dict(ForestState<LabelForest>);
template nb::dict state_to_dict(ForestState<GaussianForest>);
template ForestState<LabelForest> state_from_dict(const nb::dict&);
template ForestState<GaussianForest> state_from_dict(const nb::dict&);

}  // namespace onlineforest::bindings
