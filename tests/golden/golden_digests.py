"""What each stage makes of the files in ``corpus/``, as digests, and the record of them in ``digests.json``.

    python tests/golden/golden_digests.py           shows what differs from the record
    python tests/golden/golden_digests.py --write   records what the stages make now

When a stage's output changes on purpose, raise ``version`` in its ``Stage`` declaration (tokctl/stages/<verb>.py), so that
outputs made before are made again, and record the new digests. ``--write`` refuses a stage whose bytes changed under the
same version and the same libraries; ``--same-version`` allows it, for a stage that no release has had yet.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tokctl.artifacts.framed_hash import framed_sha256
from tokctl.artifacts.manifest import Manifest, read_manifest
from tokctl.runtime.options import ExecutionOptions
from tokctl.runtime.pipeline import read_pipeline, run_pipeline
from tokctl.stages import load_stage

HERE = Path(__file__).parent
RECORD = HERE / "digests.json"
Digests = dict[str, dict[str, Any]]


def measure(out: Path) -> Digests:
    """Run ``pipeline.toml`` into ``out``; for each node its stage, version, libraries, and the digests of its outputs.

    Of a Parquet file there are two: of its bytes, which are the same with the same library that writes Parquet, and of
    its rows, which are the same with any.
    """
    pipeline = read_pipeline(HERE / "pipeline.toml", load_stage, output=out)
    run_pipeline(pipeline, load_stage, ExecutionOptions(workers=1))
    digests: Digests = {}
    for node in pipeline.nodes:
        directory = pipeline.out(node.name)
        manifest = read_manifest(directory)
        digests[node.name] = {
            "stage": manifest.stage,
            "version": manifest.version,
            "libraries": manifest.libraries,
            "facts": framed_sha256("golden-facts-v1", [manifest.counts, stable_facts(manifest)]),
            "bytes": {output.path: output.sha256 for output in manifest.outputs},
            "rows": {o.path: rows_digest(directory / o.path) for o in manifest.outputs if o.path.endswith(".parquet")},
        }
    return digests


def stable_facts(manifest: Manifest) -> dict[str, Any]:
    """A manifest's facts without the verification through another library, which need not be installed."""
    return {name: value for name, value in manifest.facts.items() if name != "verification"}


def rows_digest(path: Path) -> str:
    """Digest of a Parquet file's columns, types and rows."""
    table = pq.read_table(path)
    digest = hashlib.sha256("".join(f"{field.name}: {field.type}\n" for field in table.schema).encode())
    for row in table.to_pylist():
        digest.update(json.dumps(row, sort_keys=True, default=bytes.hex).encode() + b"\n")
    return digest.hexdigest()


def changed(recorded: Digests, found: Digests) -> dict[str, list[str]]:
    """node -> what it makes otherwise than recorded; bytes of Parquet count where the libraries are the recorded ones."""
    changes = {}
    for node in sorted(recorded.keys() | found.keys()):
        old, new = recorded.get(node), found.get(node)
        if old is None or new is None:
            changes[node] = ["the whole node"]
            continue
        same_libraries = old["libraries"] == new["libraries"]
        differing = ["facts"] if old["facts"] != new["facts"] else []
        for kind in ("bytes", "rows"):
            for path in sorted(old[kind].keys() | new[kind].keys()):
                if kind == "bytes" and path.endswith(".parquet") and not same_libraries:
                    continue
                if old[kind].get(path) != new[kind].get(path):
                    differing.append(f"{kind} of {path}")
        if differing:
            changes[node] = differing
    return changes


def read_record() -> Digests:
    record: Digests = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--same-version", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tokctl-golden-") as out:
        found = measure(Path(out))
    recorded = read_record()
    changes = changed(recorded, found)
    for node, differing in changes.items():
        print(f"{node}: {', '.join(differing)}")
    if not arguments.write:
        sys.exit(1 if changes else 0)
    for node in changes:
        old, new = recorded.get(node), found.get(node)
        same = old is not None and new is not None and all(old[k] == new[k] for k in ("version", "libraries"))
        if same and not arguments.same_version and not reads_changed(node, changes):
            sys.exit(
                f"{node}: the output changed under version {new['version']} of {new['stage']!r}: raise the version"
            )
    RECORD.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    print(f"recorded {len(found)} nodes")


def reads_changed(node: str, changes: dict[str, list[str]]) -> bool:
    """Whether a node that ``node`` reads has changed, so that its own change may come from there."""
    pipeline = read_pipeline(HERE / "pipeline.toml", load_stage)
    by_name = {entry.name: entry for entry in pipeline.nodes}
    return node in by_name and any(name in changes for name in by_name[node].references())


if __name__ == "__main__":
    main()
