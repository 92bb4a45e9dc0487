#include "bind_state.hpp"

#include <string>
#include <string_view>

#include "dict_source.hpp"
#include "state/state_arrays.hpp"

namespace onlineforest::bindings {

namespace {

// If each arrival is a point of its own, and counts once.
constexpr std::string_view kOptionalOfMondrian[] = {"sample_of", "weights"};

}  // namespace

template <class Forest>
nb::dict state_to_dict(ForestState<Forest> state) {
  nb::dict dict;
  write_state(std::move(state), [&dict]<class T>(const std::string& name, std::vector<T> numbers) {
    heed_signals();
    if (numbers.empty() && is_one_of(name, kOptionalOfMondrian)) return;
    dict[name.c_str()] = to_array(std::move(numbers));
  });
  return dict;
}

template <class Forest>
ForestState<Forest> state_from_dict(const nb::dict& dict) {
  DictSource source(dict, kOptionalOfMondrian);
  return read_state<Forest>(source);
}

template nb::dict state_to_dict(ForestState<LabelForest>);
template nb::dict state_to_dict(ForestState<GaussianForest>);
template ForestState<LabelForest> state_from_dict(const nb::dict&);
template ForestState<GaussianForest> state_from_dict(const nb::dict&);

}  // namespace onlineforest::bindings
