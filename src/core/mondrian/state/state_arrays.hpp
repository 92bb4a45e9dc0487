// The arrays of a forest's state by name: the only list of them. Every field becomes an array of numbers, so any
// container of named arrays can hold a state. Knows no such container.
//
// A number becomes an array of one entry. A list of records (trees, measures) becomes one array per field, which joins
// the field's entries of all records; if their number varies, the array `name.sizes` holds it for each record.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "mondrian/state/archive.hpp"
#include "mondrian/state/require.hpp"

namespace onlineforest::mondrian {

// A field of a record: its name, and get(record), a reference to it.
template <class Get>
struct Field {
  const char* name;
  Get get;
};

template <class Get>
Field(const char*, Get) -> Field<Get>;

inline auto fields_of(const TreeState&) {
  return std::tuple(Field{"rng", [](auto& t) -> auto& { return t.rng; }},
                    Field{"measure", [](auto& t) -> auto& { return t.measure; }},
                    Field{"left", [](auto& t) -> auto& { return t.left; }},
                    Field{"right", [](auto& t) -> auto& { return t.right; }},
                    Field{"split_dimension", [](auto& t) -> auto& { return t.split_dimension; }},
                    Field{"split_location", [](auto& t) -> auto& { return t.split_location; }},
                    Field{"split_time", [](auto& t) -> auto& { return t.split_time; }},
                    Field{"next_point", [](auto& t) -> auto& { return t.next_point; }});
}

inline auto fields_of(const MeasureState&) {
  return std::tuple(Field{"discount_rate", [](auto& m) -> auto& { return m.discount_rate; }},
                    Field{"weights", [](auto& m) -> auto& { return m.weights; }},
                    Field{"leaf_discount", [](auto& m) -> auto& { return m.leaf_discount; }});
}

// The number of trees is no field: it is the number of tree records.
inline auto fields_of(const ForestState&) {
  return std::tuple(
      Field{"options.n_features", [](auto& s) -> auto& { return s.options.n_features; }},
      Field{"options.lifetime", [](auto& s) -> auto& { return s.options.lifetime; }},
      Field{"options.discount", [](auto& s) -> auto& { return s.options.discount; }},
      Field{"options.min_samples_split", [](auto& s) -> auto& { return s.options.min_samples_split; }},
      Field{"options.weight_rule", [](auto& s) -> auto& { return s.options.weight_rule; }},
      Field{"options.weights", [](auto& s) -> auto& { return s.options.weights; }},
      Field{"options.seed", [](auto& s) -> auto& { return s.options.seed; }},
      Field{"options.keep_rule", [](auto& s) -> auto& { return s.options.keep.rule; }},
      Field{"options.capacity", [](auto& s) -> auto& { return s.options.keep.capacity; }},
      Field{"options.half_life", [](auto& s) -> auto& { return s.options.keep.half_life; }},
      Field{"options.leaf_discount", [](auto& s) -> auto& { return s.options.leaf_discount; }},
      Field{"options.learns_leaf_discount", [](auto& s) -> auto& { return s.options.learns_leaf_discount; }},
      Field{"n_classes", [](auto& s) -> auto& { return s.n_classes; }},
      Field{"rows", [](auto& s) -> auto& { return s.rows; }},
      Field{"values", [](auto& s) -> auto& { return s.values; }},
      Field{"serials", [](auto& s) -> auto& { return s.serials; }},
      Field{"sample_of", [](auto& s) -> auto& { return s.sample_of; }},
      Field{"n_seen", [](auto& s) -> auto& { return s.n_seen; }},
      Field{"turned_away", [](auto& s) -> auto& { return s.turned_away; }},
      Field{"schedule.computed_from", [](auto& s) -> auto& { return s.schedule.computed_from; }},
      Field{"schedule.n_since", [](auto& s) -> auto& { return s.schedule.n_since; }},
      Field{"schedule.n_refreshes", [](auto& s) -> auto& { return s.schedule.n_refreshes; }},
      Field{"measure", [](auto& s) -> auto& { return s.measure; }},
      Field{"measures", [](auto& s) -> auto& { return s.measures; }},
      Field{"trees", [](auto& s) -> auto& { return s.trees; }});
}

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

// The type of a number in an array.
template <Number T>
using Stored = std::conditional_t<
    std::is_same_v<T, bool>, std::uint8_t,
    std::conditional_t<std::is_enum_v<T>, std::int32_t,
                       std::conditional_t<std::is_unsigned_v<T> && sizeof(T) == 8, std::uint64_t, T>>>;

// Passes all arrays of a state to sink(name, std::vector). Moves them out of the state.
template <class Sink>
class StateWriter {
 public:
  explicit StateWriter(Sink& sink) : sink_(sink) {}

  template <class Record>
  void write(Record&& record) {
    std::apply([&](const auto&... field) { (write(field.name, field.get(record)), ...); }, fields_of(record));
  }

 private:
  template <Number T>
  void write(const std::string& name, T number) {
    sink_(name, std::vector<Stored<T>>{static_cast<Stored<T>>(number)});
  }

  template <Number T>
  void write(const std::string& name, std::vector<T>& numbers) {
    sink_(name, std::move(numbers));
  }

  template <class Record>
  void write(const std::string& name, std::vector<Record>& records) {
    std::apply([&](const auto&... field) { (write_field(name + '.' + field.name, records, field.get), ...); },
               fields_of(Record()));
  }

  template <class Record, class Get>
  void write_field(const std::string& name, std::vector<Record>& records, Get get) {
    using Type = std::remove_cvref_t<decltype(get(records[0]))>;
    if constexpr (Number<Type>) {
      std::vector<Stored<Type>> joined;
      joined.reserve(records.size());
      for (Record& record : records) joined.push_back(static_cast<Stored<Type>>(get(record)));
      sink_(name, std::move(joined));
    } else {
      std::vector<std::uint64_t> sizes;
      std::size_t total = 0;
      for (Record& record : records) total += sizes.emplace_back(get(record).size());
      std::vector<typename Type::value_type> joined;
      joined.reserve(total);
      for (Record& record : records) {
        joined.insert(joined.end(), get(record).begin(), get(record).end());
        if constexpr (requires { get(record).shrink_to_fit(); })
          Type().swap(get(record));  // frees its memory: there may not be enough for both copies
      }
      sink_(name, std::move(joined));
      if constexpr (requires(Type t) { t.clear(); }) sink_(name + ".sizes", std::move(sizes));
    }
  }

  Sink& sink_;
};

// Reads what a StateWriter wrote: source.template get<T>(name) gives an array of numbers of type T with begin, end and
// size. Throws std::invalid_argument that names an array of wrong length. Takes memory in proportion to the arrays.
template <class Source>
class StateReader {
 public:
  explicit StateReader(Source& source) : source_(source) {}

  template <class Record>
  void read(Record& record) {
    std::apply([&](const auto&... field) { (read(field.name, field.get(record)), ...); }, fields_of(record));
  }

 private:
  static void require_size(std::size_t size, std::size_t expected, const std::string& name) {
    require_state(size == expected, "'", name, "' has ", size, " entries instead of ", expected);
  }

  template <Number T>
  void read(const std::string& name, T& number) {
    const auto array = source_.template get<Stored<T>>(name);
    require_size(array.size(), 1, name);
    number = static_cast<T>(*array.begin());
  }

  template <Number T>
  void read(const std::string& name, std::vector<T>& numbers) {
    const auto array = source_.template get<T>(name);
    numbers.assign(array.begin(), array.end());
  }

  // The first field has a fixed size per record, so its length gives the number of records.
  template <class Record>
  void read(const std::string& name, std::vector<Record>& records) {
    std::apply(
        [&](const auto& first, const auto&... others) {
          read_first(name + '.' + first.name, records, first.get);
          (read_field(name + '.' + others.name, records, others.get), ...);
        },
        fields_of(Record()));
  }

  template <class Record, class Get>
  void read_first(const std::string& name, std::vector<Record>& records, Get get) {
    using Type = std::remove_cvref_t<decltype(get(records[0]))>;
    if constexpr (Number<Type>) {
      records.resize(source_.template get<Stored<Type>>(name).size());
    } else {
      records.resize(source_.template get<typename Type::value_type>(name).size() / Type().size());
    }
    read_field(name, records, get);
  }

  template <class Record, class Get>
  void read_field(const std::string& name, std::vector<Record>& records, Get get) {
    using Type = std::remove_cvref_t<decltype(get(records[0]))>;
    if constexpr (Number<Type>) {
      const auto joined = source_.template get<Stored<Type>>(name);
      require_size(joined.size(), records.size(), name);
      for (std::size_t i = 0; i < records.size(); ++i) get(records[i]) = static_cast<Type>(joined.begin()[i]);
    } else if constexpr (requires(Type t) { t.clear(); }) {
      const auto joined = source_.template get<typename Type::value_type>(name);
      const auto sizes = source_.template get<std::uint64_t>(name + ".sizes");
      require_size(sizes.size(), records.size(), name + ".sizes");
      auto next = joined.begin();
      for (std::size_t i = 0; i < records.size(); ++i) {
        const std::uint64_t size = sizes.begin()[i];
        const auto n_left = static_cast<std::uint64_t>(joined.end() - next);
        require_state(size <= n_left, "'", name, "' has ", n_left, " entries for record ", i, ", '", name,
                      ".sizes' says ", size);
        get(records[i]).assign(next, next + static_cast<std::ptrdiff_t>(size));
        next += static_cast<std::ptrdiff_t>(size);
      }
      require_state(next == joined.end(), "'", name, "' has ", joined.end() - next, " entries more than '", name,
                    ".sizes' says");
    } else {  // a fixed number of entries per record
      const auto joined = source_.template get<typename Type::value_type>(name);
      constexpr std::size_t size = std::tuple_size_v<Type>;
      require_size(joined.size(), records.size() * size, name);
      for (std::size_t i = 0; i < records.size(); ++i) {
        std::copy_n(joined.begin() + i * size, size, get(records[i]).begin());
      }
    }
  }

  Source& source_;
};

template <class Sink>
void write_state(ForestState state, Sink sink) {
  StateWriter<Sink>(sink).write(state);
}

template <class Source>
ForestState read_state(Source& source) {
  ForestState state;
  StateReader<Source>(source).read(state);
  state.options.n_trees = state.trees.size();
  return state;
}

}  // namespace onlineforest::mondrian
