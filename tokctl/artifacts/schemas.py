"""JSON Schemas (Draft 2020-12) of the files and documents that tokctl writes."""

from __future__ import annotations

from typing import Any

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SHA256 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_COUNT = {"type": "integer", "minimum": 0}
_VERSIONS = {"type": "object", "additionalProperties": {"type": "string"}}


def _object(title: str, properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "$schema": _DRAFT,
        "title": title,
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


MANIFEST = _object(
    "manifest.json: what made a directory and what is in it",
    {
        "schema_version": {"const": 1},
        "stage": {"type": "string"},
        "version": {"type": "integer", "minimum": 1},
        "parameters": {"type": "object"},
        "inputs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"slot": {"type": "string"}, "content": _SHA256},
                "required": ["slot", "content"],
            },
        },
        "outputs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "sha256": _SHA256,
                    "bytes": _COUNT,
                    "rows": {"type": ["integer", "null"], "minimum": 0},
                },
                "required": ["path", "sha256", "bytes", "rows"],
                "additionalProperties": False,
            },
        },
        "counts": {
            "type": "object",
            "properties": {"rows_in": _COUNT, "rows_out": _COUNT, "rows_rejected": _COUNT},
            "required": ["rows_in", "rows_out", "rows_rejected"],
            "additionalProperties": False,
        },
        "facts": {"type": "object"},
        "libraries": _VERSIONS,
        "data_tables": _VERSIONS,
        "fingerprint": _SHA256,
        "digest": _SHA256,
    },
)

RESULT = {
    "$schema": _DRAFT,
    "title": "what --json prints",
    "type": "object",
    "properties": {
        "schema_version": {"const": 1},
        "command": {"type": "string"},
        "ok": {"type": "boolean"},
        "result": True,
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "kind": {"enum": ["check", "usage", "data", "artifact", "missing-extra", "interrupted", "internal"]},
                "message": {"type": "string"},
                "hint": {"type": ["string", "null"]},
                "where": {
                    "type": "object",
                    "properties": {
                        "file": {"type": ["string", "null"]},
                        "row": {"type": ["integer", "null"]},
                        "offset": {"type": ["integer", "null"]},
                    },
                    "required": ["file", "row", "offset"],
                },
            },
            "required": ["code", "kind", "message", "hint", "where"],
        },
    },
    "required": ["schema_version", "command", "ok"],
    "oneOf": [{"required": ["error"], "properties": {"ok": {"const": False}}}, {"properties": {"ok": {"const": True}}}],
}

PIPELINE = {
    "$schema": _DRAFT,
    "title": "a pipeline file (TOML)",
    "type": "object",
    "properties": {
        "pipeline": {"type": "object", "properties": {"output": {"type": "string"}}, "additionalProperties": False},
        "node": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {
                "type": "object",
                "properties": {"stage": {"type": "string"}},
                "required": ["stage"],
            },
        },
    },
    "required": ["node"],
    "additionalProperties": False,
}

GATES = {
    "$schema": _DRAFT,
    "title": "a gate file (TOML)",
    "type": "object",
    "properties": {
        "gate": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "metric": {"type": "string"},
                    "slice": {"type": "string"},
                    "op": {"enum": [">=", "<=", ">", "<", "=="]},
                    "limit": {"type": "number"},
                    "relative_to": {"type": "string"},
                    "severity": {"enum": ["error", "warn"]},
                    "id": {"type": "string"},
                },
                "required": ["metric", "op", "limit"],
            },
        }
    },
    "required": ["gate"],
}

SCHEMAS: dict[str, dict[str, Any]] = {"manifest": MANIFEST, "result": RESULT, "pipeline": PIPELINE, "gates": GATES}
