"""Near duplicates on real documentation: time beside datasketch, recall and precision against brute force.

    python tests/benchmarks/bench_minhash.py [--all | --pages N] [--repeats N] [--workers N]

3,000 documents: English installation guides of five architectures and pages of the kernel's documentation; ``--all``
takes both packages whole (all languages, about 10,900 documents). One JSON line a tool, each in processes of its own.
datasketch runs in its fastest mode (``MinHash.bulk``, its default scheme, a C hash function, the same bands and permutations)
and gets its shingles ready made; tokctl starts from texts in Arrow and also verifies. Compiling and loading are not measured.
The line of brute force has tokctl's recall over similar pairs and the precision of its unions; the exit code is 1 when recall
is below 0.99 or precision below 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import harness
from benchmarks.corpora import corpus, paragraphs
from oracles import near_duplicates as oracle

from tokctl.corpus.dedup.near import NearSettings

SETTINGS = NearSettings()
CANONICAL = ("nfc", "fold_case", "collapse_space", "drop_punctuation")


def read_texts(whole: bool, n_pages: int | None) -> dict[str, str]:
    """``doc_id`` -> text of each page that has text; of ``n_pages``, the same pages of every architecture."""
    roots = [corpus("installation-guides"), corpus("linux-doc")] if whole else [corpus("near-duplicates")]
    pages = {f"{root.name}/{path.relative_to(root)}": path for root in roots for path in root.rglob("*.html")}
    chosen = sorted(sorted(pages, key=lambda name: (name.split("/")[3:], name))[:n_pages])
    texts = {name: "\n".join(paragraphs(pages[name])) for name in chosen}
    return {name: text for name, text in texts.items() if text}


def run_tokctl(texts: dict[str, str], workers: int) -> dict[str, Any]:
    import pyarrow as pa

    from tokctl.corpus.dedup.document_rows import DocumentRows
    from tokctl.corpus.dedup.near import NearDuplicateSearch
    from tokctl.corpus.dedup.survivors import Clusters, SurvivorRule

    def search(names: list[str]) -> dict[str, Any]:
        table = pa.table(
            {
                "doc_id": pa.array(names, pa.large_string()),
                "text": pa.array([texts[name] for name in names], pa.large_string()),
                "source": pa.array([name.split("/")[0] for name in names], pa.large_string()),
            }
        )
        documents = DocumentRows.from_batches([table])
        with tempfile.TemporaryDirectory() as scratch:
            with NearDuplicateSearch(documents, SETTINGS, scratch=Path(scratch), workers=workers) as search:
                duplicates = search.run()
                clusters = Clusters(documents, duplicates, SurvivorRule.parse("longest"))
                chained = search.measure(clusters)
            return {
                "labels": duplicates.labels.tolist(),
                "statistics": clusters.statistics,
                "work": vars(search.work),
                "tied_by_a_chain": chained,
            }

    search(list(texts)[:300])  # compiles
    found, usage = harness.measure(lambda: search(list(texts)))
    return usage | found


def shingle_sets(texts: dict[str, str]) -> list[Any]:
    sets = []
    for text in texts.values():
        canonical = oracle.canonical(text, CANONICAL)
        by_character = oracle.is_unspaced(canonical)
        n_words, n_characters = SETTINGS.shingling.n_words, SETTINGS.shingling.n_characters
        sets.append(oracle.shingles(canonical, *((None, n_characters) if by_character else (n_words, None))))
    return sets


def run_datasketch(texts: dict[str, str], workers: int) -> dict[str, Any]:
    import datasketch
    import xxhash

    plan, signature = SETTINGS.bands, SETTINGS.signature
    ready = [[shingle.encode() for shingle in shingles] for shingles in shingle_sets(texts)]

    def search(documents: list[list[bytes]]) -> None:
        lsh = datasketch.MinHashLSH(
            threshold=SETTINGS.threshold, num_perm=signature.num_perm, params=(plan.n_bands, plan.n_rows)
        )
        signatures = datasketch.MinHash.bulk(
            documents, num_perm=signature.num_perm, seed=signature.seed, hashfunc=xxhash.xxh32_intdigest
        )
        with lsh.insertion_session() as session:
            for i, found in enumerate(signatures):
                session.insert(i, found)
        for found in signatures:
            lsh.query(found)

    search(ready[:50])
    return harness.measure(lambda: search(ready))[1]


def run_brute_force(texts: dict[str, str], workers: int) -> dict[str, Any]:
    sets = shingle_sets(texts)
    pairs, usage = harness.measure(lambda: oracle.similar_pairs(sets, SETTINGS.threshold))
    return {
        **usage,
        "pairs": [list(pair) for pair in pairs],
        "label": list(oracle.components(len(sets), pairs)),
        "is_sketched": [bool(shingles) for shingles in sets],
    }


TOOLS = {
    "tokctl": ("tokctl", run_tokctl),
    "datasketch": ("datasketch", run_datasketch),
    "brute-force": ("tokctl", run_brute_force),
}


def agreement(labels: list[int], brute: dict[str, Any]) -> dict[str, Any]:
    """Recall over similar pairs; a union is wrong when no chain of truly similar pairs connects what it joins."""
    n_found = sum(labels[i] == labels[j] for i, j in brute["pairs"])
    both = np.stack([labels, brute["label"]])[:, np.array(brute["is_sketched"])]
    n_clusters = np.unique(both[0]).size
    joined = both.shape[1] - n_clusters
    right = joined - (np.unique(both, axis=1).shape[1] - n_clusters)
    return {
        "threshold": SETTINGS.threshold,
        "similar_pairs": len(brute["pairs"]),
        "pairs_found": n_found,
        "recall": n_found / len(brute["pairs"]),
        "unions": int(joined),
        "right_unions": int(right),
        "precision": right / joined,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--pages", type=int, help="only so many pages")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--here", choices=list(TOOLS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    texts = read_texts(arguments.all, arguments.pages)
    if arguments.here:
        print(json.dumps(TOOLS[arguments.here][1](texts, arguments.workers)))
        return 0

    options: list[object] = ["--workers", arguments.workers, *(["--all"] if arguments.all else [])]
    if arguments.pages is not None:
        options += ["--pages", arguments.pages]
    n_bytes = sum(len(text.encode()) for text in texts.values())
    lines, found = [], {}
    for tool in TOOLS:
        found[tool] = harness.here(__file__, options, tool, repeats=arguments.repeats, peer=tool != "tokctl")
        found[tool]["n_documents"] = len(texts)
    labels, brute = found["tokctl"].pop("labels"), found["brute-force"]
    agrees = agreement(labels, brute)
    for name in ("pairs", "label", "is_sketched"):
        del brute[name]
    brute.update(agrees)
    for tool, (package, _) in TOOLS.items():
        lines.append(harness.result(f"dedup minhash, {arguments.workers} workers", tool, package, n_bytes, found[tool]))
    harness.report(lines)
    return int(agrees["recall"] < 0.99 or agrees["precision"] < 1)


if __name__ == "__main__":
    sys.exit(main())
