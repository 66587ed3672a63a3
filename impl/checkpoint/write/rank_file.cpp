#include "checkpoint/write/rank_file.h"

#include <optional>
#include <utility>

#include "checkpoint/format/safetensors.h"
#include "core/error.h"
#include "core/hash.h"

namespace shardrec::checkpoint {

namespace {

using core::sentence;

bool written_by(const ItemContents& item, int rank) {
  return item.kind == ItemKind::kHostTensor || rank == 0;
}

// "tables/user/weights/0_0"; without the collection's name where it has none.
std::string tensor_name(const CollectionContents& collection, const BoxTensor& box) {
  const plan::Table& table = collection.model->tables[static_cast<size_t>(box.table)];
  return sentence(collection.name, collection.name.empty() ? "" : "/", table.name, "/",
                  name_of(collection.model->optimizer_of(box.table).kind, box.part), "/",
                  box.cells.row, "_", box.cells.col);
}

std::string list_name(const CollectionContents& collection, const ChangedList& list) {
  const plan::Table& table = collection.model->tables[static_cast<size_t>(list.table)];
  return sentence(collection.name, collection.name.empty() ? "" : "/", table.name,
                  list.of_states ? "/state_rows/" : "/rows/", list.row, "_", list.col);
}

const ChangedList* list_of(const CollectionContents& collection, const BoxTensor& box) {
  return box.list == kAllRows ? nullptr : &collection.lists[static_cast<size_t>(box.list)];
}

// first_list: of the collection's, among those of the rank.
ManifestTensor describe(const CollectionContents& collection, size_t index, size_t first_list,
                        const BoxTensor& box) {
  check_box(box, *collection.model);
  std::optional<ListedRows> listed;
  if (const ChangedList* const list = list_of(collection, box)) {
    listed = {.list = static_cast<int32_t>(first_list) + box.list, .count = list->count};
  }
  return {.collection = static_cast<int32_t>(index),
          .table = box.table,
          .part = box.part,
          .layout = box.layout,
          .cells = box.cells,
          .stored = {.file = 0, .name = tensor_name(collection, box)},
          .chunk_rows = rows_per_chunk(box.layout.row_bytes(box.cells.cols)),
          .listed = listed};
}

}  // namespace

int64_t bytes_to_write(const Contents& contents, int rank) {
  int64_t total = 0;
  for (const CollectionContents& collection : contents.collections) {
    for (const ChangedList& list : collection.lists) total += list.count * kRowNumberBytes;
    for (const BoxTensor& box : collection.boxes) {
      const ChangedList* const list = list_of(collection, box);
      const int64_t rows = list == nullptr ? box.cells.rows : list->count;
      total += rows * box.layout.row_bytes(box.cells.cols);
    }
  }
  for (const ItemContents& item : contents.items) {
    if (!written_by(item, rank)) continue;
    for (const DenseTensor& tensor : item.tensors) total += tensor.bytes();
  }
  return total;
}

Manifest describe_rank(const Contents& contents, int rank, const std::string& file_name) {
  Manifest own;
  for (size_t c = 0; c < contents.collections.size(); ++c) {
    const CollectionContents& collection = contents.collections[c];
    // The texts may be long: those of rank 0 count.
    own.collections.push_back({.name = collection.name,
                               .step = collection.step,
                               .model = rank == 0 ? plan::model_to_json(*collection.model) : "",
                               .plan = rank == 0 ? collection.plan : "",
                               .tables = collection.tables});
    const size_t first_list = own.lists.size();
    for (const ChangedList& list : collection.lists) {
      own.lists.push_back({.collection = static_cast<int32_t>(c),
                           .table = list.table,
                           .row = list.row,
                           .rows = list.rows,
                           .count = list.count,
                           .stored = {.file = 0, .name = list_name(collection, list)}});
    }
    for (const BoxTensor& box : collection.boxes) {
      own.tensors.push_back(describe(collection, c, first_list, box));
    }
  }
  bool any = !own.tensors.empty();
  for (const ItemContents& item : contents.items) {
    if (!written_by(item, rank)) continue;
    ManifestItem& added = own.items.emplace_back(ManifestItem{
        .kind = item.kind, .name = item.name, .rank = rank, .description = item.description});
    for (const DenseTensor& tensor : item.tensors) {
      std::string name = item.name + "/" + tensor.name;
      if (item.kind == ItemKind::kHostTensor) name = sentence(item.name, "/rank_", rank);
      added.tensors.push_back({.name = tensor.name,
                               .dtype = tensor.dtype,
                               .shape = tensor.shape,
                               .stored = {.file = 0, .name = std::move(name)}});
      any = true;
    }
  }
  if (any) own.files.push_back({.name = file_name});
  return own;
}

void write_rank_file(core::WriteFile& file, const Contents& contents, core::Control* control,
                     Manifest& own) {
  std::vector<TensorInfo> infos;
  for (const ManifestList& list : own.lists) {
    infos.push_back({.name = list.stored.name,
                     .dtype = safetensors_dtype(SHARDREC_INT64),
                     .shape = {list.count}});
  }
  for (const ManifestTensor& tensor : own.tensors) {
    TensorInfo& info =
        infos.emplace_back(TensorInfo{.name = tensor.stored.name,
                                      .dtype = safetensors_dtype(tensor.layout.dtype),
                                      .shape = {tensor.stored_rows()}});
    if (!tensor.layout.by_row) info.shape.push_back(tensor.cells.cols);
  }
  for (const ManifestItem& item : own.items) {
    for (const ManifestDense& tensor : item.tensors) {
      infos.push_back({.name = tensor.stored.name,
                       .dtype = safetensors_dtype(tensor.dtype),
                       .shape = tensor.shape});
    }
  }
  const std::string header = make_safetensors_header(infos);
  ManifestFile& about = own.files.front();
  about.header_bytes = std::ssize(header);
  about.header_checksum = core::hash64(0, header);
  about.bytes = about.header_bytes + (infos.empty() ? 0 : infos.back().end);

  file.append(std::as_bytes(std::span(header)));
  size_t next = 0;  // of infos
  const auto append = [&](std::span<const std::byte> bytes) {
    file.append(bytes);
    if (control != nullptr) control->advance(std::ssize(bytes));
    return core::hash64(0, bytes);
  };
  const auto append_to = [&](std::vector<uint64_t>& checksums) {
    return [&](std::span<const std::byte> chunk) { checksums.push_back(append(chunk)); };
  };
  for (size_t l = 0; const CollectionContents& collection : contents.collections) {
    for (const ChangedList& list : collection.lists) {
      ManifestList& added = own.lists[l++];
      added.stored.offset = about.header_bytes + infos[next++].begin;
      for_each_chunk(list, append_to(added.checksums));
    }
  }
  size_t t = 0;
  for (const CollectionContents& collection : contents.collections) {
    for (const BoxTensor& box : collection.boxes) {
      ManifestTensor& tensor = own.tensors[t++];
      tensor.stored.offset = about.header_bytes + infos[next++].begin;
      if (const ChangedList* const list = list_of(collection, box)) {
        for_each_chunk(box, *list, append_to(tensor.checksums));
      } else {
        for_each_chunk(box, append_to(tensor.checksums));
      }
    }
  }
  size_t i = 0;
  for (const ItemContents& item : contents.items) {
    if (i == own.items.size() || own.items[i].name != item.name) continue;  // another rank's
    std::vector<ManifestDense>& tensors = own.items[i++].tensors;
    for (size_t k = 0; k < tensors.size(); ++k) {
      tensors[k].stored.offset = about.header_bytes + infos[next++].begin;
      tensors[k].checksum = append(item.tensors[k].span());
    }
  }
  file.sync();
  file.close();
}

}  // namespace shardrec::checkpoint
