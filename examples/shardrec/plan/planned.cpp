#include "plan/planned.h"

#include <utility>

namespace shardrec::cli {
namespace {

PlannedBox box_of(const Plan& plan, int32_t table, int32_t index) {
  PlannedBox box{.place = plan.box(table, index), .bytes = {}};
  box.bytes = {box.place.weight_bytes, box.place.state_bytes};
  return box;
}

nlohmann::json bytes_json(nlohmann::json about, const PlannedBytes& bytes) {
  about["weight_bytes"] = bytes.weights;
  about["state_bytes"] = bytes.states;
  about["total_bytes"] = bytes.total();
  return about;
}

}  // namespace

Planned read_plan(const Plan& plan, const std::string& text) {
  Planned planned;
  planned.plan = nlohmann::json::parse(text);
  planned.ranks = planned.plan.at("ranks");
  planned.by_rank.resize(static_cast<size_t>(planned.ranks));
  PlannedBytes replicated;
  for (const auto& shape : planned.plan.at("tables")) {
    PlannedTable table{.name = shape.at("name"), .replicated = shape.at("replicated")};
    const auto index = static_cast<int32_t>(planned.tables.size());
    const size_t boxes = table.replicated ? 1 : shape.at("boxes").size();
    for (size_t b = 0; b < boxes; ++b) {
      const PlannedBox box = box_of(plan, index, static_cast<int32_t>(b));
      table.bytes.add(box.bytes);
      if (!table.replicated) planned.by_rank[static_cast<size_t>(box.place.rank)].add(box.bytes);
      table.boxes.push_back(box);
    }
    if (table.replicated) {
      replicated.add(table.bytes);
      table.bytes.weights *= planned.ranks;
      table.bytes.states *= planned.ranks;
    }
    planned.tables.push_back(std::move(table));
  }
  for (PlannedBytes& rank : planned.by_rank) rank.add(replicated);
  return planned;
}

nlohmann::json planned_json(const Planned& planned) {
  nlohmann::json out;
  out["plan"] = planned.plan;
  out["tables"] = nlohmann::json::array();
  for (const PlannedTable& table : planned.tables) {
    nlohmann::json boxes = nlohmann::json::array();
    for (const PlannedBox& box : table.boxes) boxes.push_back(box.bytes.total());
    out["tables"].push_back(
        bytes_json({{"name", table.name}, {"box_bytes", std::move(boxes)}}, table.bytes));
  }
  out["ranks"] = nlohmann::json::array();
  for (size_t rank = 0; rank < planned.by_rank.size(); ++rank) {
    out["ranks"].push_back(bytes_json({{"rank", rank}}, planned.by_rank[rank]));
  }
  return out;
}

Picture picture_of(const nlohmann::json& planned) {
  Picture picture;
  const nlohmann::json& shapes = planned.at("plan").at("tables");
  for (size_t t = 0; t < shapes.size(); ++t) {
    const nlohmann::json& shape = shapes.at(t);
    const nlohmann::json& table = planned.at("tables").at(t);
    PictureTable drawn{.name = shape.at("name"),
                       .rows = shape.at("rows"),
                       .dim = shape.at("dim"),
                       .bytes = table.at("total_bytes"),
                       .replicated = shape.at("replicated")};
    const nlohmann::json& bytes = table.at("box_bytes");
    for (size_t b = 0; b < bytes.size(); ++b) {
      PictureBox box{.rows = drawn.rows, .cols = drawn.dim, .bytes = bytes.at(b)};
      if (!drawn.replicated) {
        const nlohmann::json& place = shape.at("boxes").at(b);
        box.rank = place.at("rank");
        box.row = place.at("row");
        box.rows = place.at("rows");
        box.col = place.at("col");
        box.cols = place.at("cols");
      }
      drawn.boxes.push_back(box);
    }
    picture.tables.push_back(std::move(drawn));
  }
  for (const nlohmann::json& rank : planned.at("ranks")) {
    picture.bytes_by_rank.push_back(rank.at("total_bytes"));
  }
  return picture;
}

}  // namespace shardrec::cli
