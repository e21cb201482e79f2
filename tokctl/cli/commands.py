"""The table of commands: name -> (one-line summary, "module:attribute" or a table of sub-commands). Importing it loads nothing."""

from __future__ import annotations

from typing import Any

from tokctl.stages import STAGES


def _stage_commands() -> dict[str, Any]:
    commands: dict[str, Any] = {}
    groups = {
        "dedup": "Remove duplicate documents, exactly or by MinHash.",
        "fit": "Fit a tokenizer model from word counts or straight from text.",
        "export": "Write a tokenizer in another library's format, checked through that library.",
    }
    for name, (summary, target) in STAGES.items():
        group, _, rest = name.partition(" ")
        if rest:
            commands.setdefault(group, (groups[group], {}))[1][rest] = (summary, target)
        else:
            commands[name] = (summary, target)
    return commands


COMMANDS: dict[str, Any] = {
    **_stage_commands(),
    "encode": ("Text to token ids.", "tokctl.cli.encode_command:command"),
    "decode": ("Token ids back to the exact bytes.", "tokctl.cli.decode_command:command"),
    "inspect": ("Show what happens to one text: words, merges, ids, bytes.", "tokctl.cli.inspect_command:command"),
    "compare": ("Compare candidate tokenizers on validation text.", "tokctl.cli.compare_command:command"),
    "run": ("Run a pipeline file in one process.", "tokctl.cli.pipeline_commands:run_command"),
    "status": (
        "Show where a pipeline's or a directory's outputs stand.",
        "tokctl.cli.pipeline_commands:status_command",
    ),
    "verify": ("Re-hash an artifact and check its manifest.", "tokctl.cli.artifact_commands:verify_command"),
    "hash": ("Print an artifact's identity.", "tokctl.cli.artifact_commands:hash_command"),
    "schema": ("Print a JSON Schema.", "tokctl.cli.artifact_commands:schema_command"),
    "stages": ("List the stages and their parameters.", "tokctl.cli.artifact_commands:stages_command"),
    "cache": (
        "The kernel and digest cache.",
        {
            "dir": ("Print the cache directory.", "tokctl.cli.cache_commands:dir_command"),
            "warm": ("Compile every kernel now.", "tokctl.cli.cache_commands:warm_command"),
            "clean": ("Delete the cache.", "tokctl.cli.cache_commands:clean_command"),
        },
    ),
}
