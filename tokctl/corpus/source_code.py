"""Source code by name: which programming language a file is in, and whether a file is text at all."""

from __future__ import annotations

from tokctl.corpus.text_encoding import first_invalid, split_bom

HEAD = 8000  # bytes looked at, as git does

LANGUAGES: dict[str, str] = {
    ".adb": "ada", ".ads": "ada", ".asm": "assembly", ".awk": "awk", ".bash": "shell", ".bat": "batch", ".bib": "bibtex",
    ".c": "c", ".cc": "cpp", ".cfg": "ini", ".cjs": "javascript", ".clj": "clojure", ".cljs": "clojure",
    ".cmake": "cmake", ".cob": "cobol", ".coffee": "coffeescript", ".cpp": "cpp", ".cr": "crystal", ".cs": "csharp",
    ".css": "css", ".cu": "cuda", ".cuh": "cuda", ".cxx": "cpp", ".d": "d", ".dart": "dart", ".dockerfile": "dockerfile",
    ".el": "emacs-lisp", ".elm": "elm", ".erl": "erlang", ".ex": "elixir", ".exs": "elixir", ".f": "fortran",
    ".f03": "fortran", ".f90": "fortran", ".f95": "fortran", ".fs": "fsharp", ".fsx": "fsharp", ".go": "go",
    ".gql": "graphql", ".gradle": "groovy", ".graphql": "graphql", ".groovy": "groovy", ".h": "c", ".hh": "cpp",
    ".hpp": "cpp", ".hrl": "erlang", ".hs": "haskell", ".hxx": "cpp", ".ini": "ini", ".ipynb": "jupyter", ".java": "java",
    ".jl": "julia", ".js": "javascript", ".json": "json", ".json5": "json", ".jsx": "javascript", ".kt": "kotlin",
    ".kts": "kotlin", ".less": "less", ".lisp": "common-lisp", ".ll": "llvm", ".lua": "lua", ".m": "objective-c",
    ".mjs": "javascript", ".mk": "makefile", ".ml": "ocaml", ".mli": "ocaml", ".mm": "objective-c", ".nim": "nim",
    ".nix": "nix", ".pas": "pascal", ".php": "php", ".pl": "perl", ".pm": "perl", ".pro": "prolog", ".proto": "protobuf",
    ".ps1": "powershell", ".py": "python", ".pyi": "python", ".pyx": "cython", ".r": "r", ".rb": "ruby", ".rkt": "racket",
    ".rs": "rust", ".s": "assembly", ".sass": "sass", ".scala": "scala", ".scm": "scheme", ".scss": "scss", ".sh": "shell",
    ".sol": "solidity", ".sql": "sql", ".sv": "systemverilog", ".svelte": "svelte", ".svh": "systemverilog",
    ".swift": "swift", ".tcl": "tcl", ".tex": "tex", ".tf": "hcl", ".toml": "toml", ".ts": "typescript",
    ".tsx": "typescript", ".v": "verilog", ".vb": "visual-basic", ".vhd": "vhdl", ".vhdl": "vhdl", ".vim": "vim-script",
    ".vue": "vue", ".wat": "webassembly", ".xml": "xml", ".xsl": "xml", ".yaml": "yaml", ".yml": "yaml", ".zig": "zig",
    ".zsh": "shell",
}  # fmt: skip
FILE_NAMES: dict[str, str] = {
    "BUILD": "starlark", "BUILD.bazel": "starlark", "CMakeLists.txt": "cmake", "Containerfile": "dockerfile",
    "Dockerfile": "dockerfile", "GNUmakefile": "makefile", "Gemfile": "ruby", "Jenkinsfile": "groovy",
    "Makefile": "makefile", "Rakefile": "ruby", "WORKSPACE": "starlark", "makefile": "makefile",
}  # fmt: skip


def code_language(name: str) -> str | None:
    """The programming language of a file by its name (extension in lower case), or None."""
    base = name.rsplit("/", 1)[-1]
    if base in FILE_NAMES:
        return FILE_NAMES[base]
    stem, dot, extension = base.rpartition(".")
    return LANGUAGES.get("." + extension.lower()) if dot and stem else None


def has_nul(head: bytes) -> bool:
    """Whether the first bytes of a file hold a NUL: no source code does, most binary formats do. UTF-16 by its mark is text."""
    return split_bom(head)[0] is None and b"\0" in head[:HEAD]


def looks_binary(head: bytes) -> bool:
    """Whether a file about whose name nothing is known is no text: NUL, invalid UTF-8, or many control characters."""
    head = head[:HEAD]
    if split_bom(head)[0] is not None:
        return False
    if b"\0" in head:
        return True
    invalid = first_invalid(head)
    if invalid is not None and (len(head) < HEAD or invalid < len(head) - 3):  # a character may be cut at the end
        return True
    n_control = sum(head.count(bytes([c])) for c in _CONTROL)
    return n_control * 10 > len(head)


_CONTROL = [c for c in range(32) if c not in b"\t\n\f\r\x1b\b"] + [127]
