"""Near duplicates on real documentation: recall and precision against brute force, and time against datasketch.

    python tests/benchmarks/bench_minhash.py [--all] [--repeats N] [--workers N]

3,000 documents: English installation guides of five architectures and pages of the kernel's documentation; ``--all``
takes both packages whole (all languages, about 10,900 documents). One JSON line a measurement. datasketch runs in its
fastest mode (``MinHash.bulk``, its default scheme, a C hash function, the same bands and permutations) and gets its
shingles ready made; tokctl starts from texts in Arrow and also verifies. Both on one thread; compiling and loading are
not counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import datasketch
import numpy as np
import pyarrow as pa
import xxhash

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.corpora import corpus, paragraphs
from oracles import near_duplicates as oracle

from tokctl.corpus.dedup.document_rows import DocumentRows
from tokctl.corpus.dedup.near import NearDuplicateSearch, NearSettings
from tokctl.corpus.dedup.survivors import Clusters, SurvivorRule


def read_texts(whole: bool) -> dict[str, str]:
    """``doc_id`` -> text of each page that has text."""
    roots = [corpus("installation-guides"), corpus("linux-doc")] if whole else [corpus("near-duplicates")]
    pages = {f"{root.name}/{path.relative_to(root)}": path for root in roots for path in root.rglob("*.html")}
    texts = {name: "\n".join(paragraphs(pages[name])) for name in sorted(pages)}
    return {name: text for name, text in texts.items() if text}


def timed(repeats: int, run: Callable[[], object]) -> tuple[float, list[float]]:
    """Median and all times in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times), [round(seconds, 4) for seconds in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()

    texts = read_texts(arguments.all)
    names = list(texts)
    settings = NearSettings()
    table = pa.table(
        {
            "doc_id": pa.array(names, pa.large_string()),
            "text": pa.array(list(texts.values()), pa.large_string()),
            "source": pa.array([name.split("/")[0] for name in names], pa.large_string()),
        }
    )
    documents = DocumentRows.from_batches([table])
    n_bytes = sum(len(text.encode()) for text in texts.values())

    found: dict[str, object] = {}

    def ours() -> None:
        with tempfile.TemporaryDirectory() as scratch:
            with NearDuplicateSearch(documents, settings, scratch=Path(scratch), workers=arguments.workers) as search:
                duplicates = search.run()
                clusters = Clusters(documents, duplicates, SurvivorRule.parse("longest"))
                chained = search.measure(clusters)
            found.update(labels=duplicates.labels, clusters=clusters, work=search.work, chained=chained)

    ours()  # compiles
    seconds, times = timed(arguments.repeats, ours)
    clusters, labels = found["clusters"], found["labels"]
    assert isinstance(clusters, Clusters) and isinstance(labels, np.ndarray)
    print(
        json.dumps(
            {
                "what": "tokctl near duplicates, from texts, verified",
                "documents": len(names),
                "text_bytes": n_bytes,
                "workers": arguments.workers,
                "seconds": round(seconds, 4),
                "times": times,
                "megabytes_per_second": round(n_bytes / seconds / 1e6, 1),
                "statistics": clusters.statistics,
                "work": vars(found["work"]),
                "tied_by_a_chain": found["chained"],
            }
        ),
        flush=True,
    )

    options = ("nfc", "fold_case", "collapse_space", "drop_punctuation")
    sets = []
    for text in texts.values():
        canonical = oracle.canonical(text, options)
        by_character = oracle.is_unspaced(canonical)
        sets.append(
            oracle.shingles(canonical, None, settings.shingling.n_characters)
            if by_character
            else oracle.shingles(canonical, settings.shingling.n_words, None)
        )
    start = time.perf_counter()
    pairs = oracle.similar_pairs(sets, settings.threshold)
    brute_seconds = time.perf_counter() - start
    true_label = np.array(oracle.components(len(names), pairs))
    n_found = sum(labels[i] == labels[j] for i, j in pairs)
    # A union of two components is wrong when no chain of truly similar pairs connects them.
    sketched = np.array([bool(shingle_set) for shingle_set in sets])
    both = np.stack([labels, true_label])[:, sketched]
    n_clusters = np.unique(both[0]).size
    joined = both.shape[1] - n_clusters
    right = joined - (np.unique(both, axis=1).shape[1] - n_clusters)
    print(
        json.dumps(
            {
                "what": "against brute force",
                "threshold": settings.threshold,
                "similar_pairs": len(pairs),
                "pairs_found": int(n_found),
                "recall": n_found / len(pairs),
                "unions": int(joined),
                "right_unions": int(right),
                "precision": right / joined,
                "brute_force_seconds": round(brute_seconds, 2),
            }
        ),
        flush=True,
    )

    plan = settings.bands
    ready = [[shingle.encode() for shingle in shingle_set] for shingle_set in sets]

    def peer() -> None:
        lsh = datasketch.MinHashLSH(
            threshold=settings.threshold, num_perm=settings.signature.num_perm, params=(plan.n_bands, plan.n_rows)
        )
        signatures = datasketch.MinHash.bulk(
            ready, num_perm=settings.signature.num_perm, seed=settings.signature.seed, hashfunc=xxhash.xxh32_intdigest
        )
        with lsh.insertion_session() as session:
            for i, signature in enumerate(signatures):
                session.insert(i, signature)
        for signature in signatures:
            lsh.query(signature)

    seconds_peer, times = timed(arguments.repeats, peer)
    print(
        json.dumps(
            {
                "what": "datasketch, from ready shingles: bulk signatures, LSH insert and query, not verified",
                "version": datasketch.__version__,
                "seconds": round(seconds_peer, 4),
                "times": times,
                "tokctl_is_faster_by": round(seconds_peer / seconds, 2),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
