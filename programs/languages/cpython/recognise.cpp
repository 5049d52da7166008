#include "programs/languages/cpython/recognise.h"

#include "programs/languages/exports.h"

namespace rawbpf::inline v0::languages::cpython {

std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes) {
    if (!may_export(file, "_PyRuntime").value_or(true)) return std::nullopt;
    Interpreter out = exported(file, bytes, {"_PyRuntime", "PyCode_Type", "PyFrame_Type", "_Py_NoneStruct", "Py_Version"},
                               "_PyEval_EvalFrameDefault");
    if (out.address("_PyRuntime") == 0 || out.address("PyCode_Type") == 0) return std::nullopt;
    if (const uint64_t version = out.address("Py_Version"); version != 0)
        if (const auto at = file.file_offset(version); at && *at + 4 <= bytes.size())
            out.version = load<uint32_t>(bytes.data() + *at);
    return out;
}

} // namespace rawbpf::inline v0::languages::cpython
