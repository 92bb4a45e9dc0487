// The classes of a classifier: their labels and codes, in a file and out of it. Must not know forests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "container.hpp"
#include "json.hpp"

namespace onlineforest::capi {

class Classes {
 public:
  // Those of the metadata of a file whose core forest has these label hashes.
  Classes(const Metadata& metadata, std::span<const std::uint64_t> hashes, Allowance& memory);

  [[nodiscard]] std::size_t size() const { return labels_.size(); }
  [[nodiscard]] const std::string& label(std::size_t index) const { return labels_[index].text; }
  [[nodiscard]] std::int32_t code(std::size_t index) const { return codes_[index]; }
  // How often a sample of each class counts, if that is what class_weight says; none if it says nothing.
  [[nodiscard]] std::vector<double> weights_in(const Json& class_weight) const;

  // Which codes were declared: 1 or 0 for each. Throws Failure if the metadata do not list these codes.
  void check_declared(const Metadata& metadata, std::span<const std::uint8_t> are_declared, Allowance& memory) const;
  // Throws Failure if a code that is known belongs to no class.
  void check_known(std::span<const std::uint8_t> are_known) const;

  // Puts the classes that are known into metadata, and into the hashes those of codes that have lost their class. So a
  // name leaves the file with the last sample of its class.
  void write(std::span<const std::uint8_t> are_known, Metadata& metadata, std::span<std::uint64_t> hashes) const;

 private:
  [[nodiscard]] std::string json_of_labels(const std::vector<std::size_t>& which) const;

  std::string type_;          // of the labels, as NumPy calls it
  std::vector<Json> labels_;  // sorted
  std::vector<std::int32_t> codes_;
  std::size_t n_codes_;
};

}  // namespace onlineforest::capi
