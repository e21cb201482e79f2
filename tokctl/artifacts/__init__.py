"""The artifact layer: canonical JSON, framed hashes, manifests, schemas, verification."""
